package registry

import "fmt"

// Secret is a text that is never shown: however it is printed or marshalled, it is ***.
type Secret string

const redactedText = "***"

var (
	_ fmt.Formatter = Secret("")
	_ fmt.Stringer  = Secret("")
)

// Format prints stars for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redactedText)) }

// String gives stars.
func (s Secret) String() string { return redactedText }

// MarshalText writes stars.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redactedText), nil }
