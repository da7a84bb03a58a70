package output

import "errors"

// ErrSilent ends a command with a code of its own after it has said everything: wrap it with exit.With.
var ErrSilent = errors.New("")

// Message is what is left to say about the error that a command ended with; empty if there is none, or the command has
// said it.
func Message(err error) string {
	if err == nil || errors.Is(err, ErrSilent) {
		return ""
	}
	return err.Error()
}
