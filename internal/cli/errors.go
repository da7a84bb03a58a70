package cli

import "errors"

// errSilent ends a command with a code of its own after it has said everything.
var errSilent = errors.New("")

// Message is what is left to say about an error; empty if the command has said it.
func Message(err error) string {
	if err == nil || errors.Is(err, errSilent) {
		return ""
	}
	return err.Error()
}
