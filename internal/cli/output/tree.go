package output

import (
	"fmt"
	"io"
)

// Branch is one line of a tree, with those below it.
type Branch struct {
	Name, State, Message string
	Children             []Branch
}

// Draw writes the branch behind first, and those below it behind rest, with a tab between its three columns. Its texts
// may come from anywhere: they are sanitized.
func (b Branch) Draw(w io.Writer, first, rest string) {
	fmt.Fprintf(w, "%s%s\t%s\t%s\n", first, Sanitize(b.Name), Sanitize(b.State), Sanitize(b.Message))
	for i, c := range b.Children {
		if i == len(b.Children)-1 {
			c.Draw(w, rest+"└─ ", rest+"   ")
		} else {
			c.Draw(w, rest+"├─ ", rest+"│  ")
		}
	}
}
