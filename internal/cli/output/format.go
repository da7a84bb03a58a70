// Package output is how polder prints: formats, trees, ages, and texts that do nothing to a terminal.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Format is the value of -o: how a command prints. It is a flag of cobra.
type Format string

// Values of -o that every command has which has it.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
)

// AddFlags adds -o to a command, with table as the default.
func (f *Format) AddFlags(c *cobra.Command) {
	*f = FormatTable
	c.Flags().VarP(f, "output", "o", "table, json or yaml")
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{string(FormatTable), string(FormatJSON), string(FormatYAML)},
			cobra.ShellCompDirectiveNoFileComp))
}

// IsStructured says that a program reads it: print it with Print.
func (f *Format) IsStructured() bool { return *f != FormatTable }

// Print writes v as YAML if that is the format, else as JSON.
func (f *Format) Print(w io.Writer, v any) error {
	var b []byte
	var err error
	if *f == FormatYAML {
		b, err = yaml.Marshal(v)
	} else if b, err = json.MarshalIndent(v, "", "  "); err == nil {
		b = append(b, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// String makes Format a flag, with Type and Set.
func (f *Format) String() string { return string(*f) }

// Type names the flag's value in help texts.
func (f *Format) Type() string { return "format" }

// Set refuses what is no format.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case FormatTable, FormatJSON, FormatYAML:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("choose table, json or yaml")
}
