package cluster

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// watchAndPrint prints all there are, and then what changes.
func (q *getOptions) watchAndPrint(c *cobra.Command, a *connect.Access) error {
	v := &watchPrinter{
		getOptions: q, out: c.OutOrStdout(), now: a.Globals.Now,
		table:           table{wide: q.out.Format == output.FormatWide, namespaces: q.allNamespaces},
		printedVersions: map[string]string{}, notFoundError: func(name string) error { return notFoundError(a, name) },
	}
	f := &follow.Follower{Source: q.newSource(a), Observer: v, Now: a.Globals.Now, KnownKeys: map[string]bool{}}
	if !q.allNamespaces {
		for _, name := range q.names { // one that is not there is gone at the first look
			f.KnownKeys[a.Namespace+"/"+name] = true
		}
	}
	err := f.Run(c.Context())
	if c.Context().Err() != nil {
		return exit.With(exit.Interrupted, output.ErrSilent)
	}
	if v.err != nil {
		return v.err
	}
	return a.Explain("watching clusters", err)
}

// watchPrinter prints clusters as they change.
type watchPrinter struct {
	*getOptions
	out             io.Writer
	now             func() time.Time
	table           table
	printedVersions map[string]string // what was printed last of each
	notFoundError   func(name string) error
	err             error
}

var _ follow.Observer = (*watchPrinter)(nil)

// OnObject prints a resource version once: a watch that begins anew lists all objects again.
func (v *watchPrinter) OnObject(u *unstructured.Unstructured) (done bool) {
	if !v.isSelected(u.GetName()) || v.printedVersions[follow.ObjectKey(u)] == u.GetResourceVersion() {
		return false
	}
	v.printedVersions[follow.ObjectKey(u)] = u.GetResourceVersion()
	if !v.getOptions.out.IsHumanReadable() {
		if v.getOptions.out.Format == output.FormatYAML {
			fmt.Fprintln(v.out, "---")
		}
		v.err = v.getOptions.out.PrintObject(v.out, u)
		return v.err != nil
	}
	c, err := objects.FromUnstructured[v1alpha1.WorkloadCluster](u)
	if err != nil {
		v.err = err
		return true
	}
	row := v.table.row(c, v.now())
	rows := [][]string{row}
	// Lines to come are not known: the first one reserves widths for all.
	if v.table.widths == nil {
		v.table.reserveWidths()
		rows = [][]string{v.table.header(), row}
	}
	v.err = v.table.print(v.out, rows)
	return v.err != nil
}

// OnDelete ends the watch for a name that never was there, since it may be misspelt, and goes on after one that is
// gone: it may come back.
func (v *watchPrinter) OnDelete(key string) (done bool) {
	_, name, _ := strings.Cut(key, "/")
	if _, was := v.printedVersions[key]; !was && v.isSelected(name) {
		v.err = v.notFoundError(name)
		return true
	}
	if delete(v.printedVersions, key); v.isSelected(name) && v.getOptions.out.IsHumanReadable() {
		_, v.err = fmt.Fprintf(v.out, "%s is gone\n", name)
	}
	return v.err != nil
}

// OnError is silent: what was printed is still what is known.
func (v *watchPrinter) OnError(error) {}
