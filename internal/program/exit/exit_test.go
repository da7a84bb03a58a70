package exit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	cause := errors.New("cause")
	tests := map[string]struct {
		err  error
		want int
	}{
		"no error":                    {nil, OK},
		"plain error":                 {cause, Failure},
		"error with a code":           {With(InUse, cause), InUse},
		"wrapped error with a code":   {fmt.Errorf("starting: %w", Errorf(DataDir, "x")), DataDir},
		"nil stays nil":               {With(InUse, nil), OK},
		"the outermost code is taken": {With(Timeout, With(InUse, cause)), Timeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Code(tt.err); got != tt.want {
				t.Errorf("Code() = %d, want %d", got, tt.want)
			}
		})
	}
	if !errors.Is(With(InUse, cause), cause) {
		t.Error("With hides its cause from errors.Is")
	}
}

func TestMeaningsAreUniqueAndOrdered(t *testing.T) {
	last := -1
	for _, m := range Meanings() {
		if m.Code <= last {
			t.Errorf("code %d follows %d", m.Code, last)
		}
		last = m.Code
	}
}

// The documented unit must start polderd again after a crash of the Go runtime, which ends with 2, and not after what
// does not get better by itself.
func TestDocumentedUnit(t *testing.T) {
	b, err := os.ReadFile("../../../docs/operate/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(b), "RestartPreventExitStatus=")
	line, _, _ := strings.Cut(after, "\n")
	var want []string
	for _, code := range []int{DataDir, InUse, NewerData, AddressTaken, NoManifests, StoreDamaged, DaemonUsage} {
		want = append(want, strconv.Itoa(code))
	}
	if !found || line != strings.Join(want, " ") {
		t.Errorf("the unit says %q, want %q", line, strings.Join(want, " "))
	}
}
