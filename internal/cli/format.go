package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is the value of -o.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func (f *format) addFlags(c *cobra.Command) {
	*f = formatTable
	c.Flags().VarP(f, "output", "o", "table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(formatTable), string(formatJSON), string(formatYAML)}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func (f *format) isStructured() bool { return *f != formatTable }

// print writes v as JSON or YAML.
func (f *format) print(w io.Writer, v any) error {
	var b []byte
	var err error
	if *f == formatYAML {
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

// String, Set and Type make format a flag.
func (f *format) String() string { return string(*f) }

// Type names the flag's value in help texts.
func (f *format) Type() string { return "format" }

// Set refuses what is no format.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("choose table, json or yaml")
}
