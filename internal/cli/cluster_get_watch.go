package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// watchAndPrint prints all there are, and then what changes.
func (q *getOptions) watchAndPrint(c *cobra.Command, a *access) error {
	v := &clusterWatchPrinter{getOptions: q, out: c.OutOrStdout(), table: clusterTable{wide: q.out.format == formatWide, namespaces: q.allNamespaces}, printedVersions: map[string]string{}, clusterNotFound: func(name string) error { return clusterNotFound(a, name) }}
	f := &follower{source: q.clusterSource(a), observer: v, knownKeys: map[string]bool{}}
	if !q.allNamespaces {
		for _, name := range q.names { // one that is not there is gone at the first look
			f.knownKeys[a.namespace+"/"+name] = true
		}
	}
	err := f.run(c.Context())
	if c.Context().Err() != nil {
		return exit.With(exit.Interrupted, errSilent)
	}
	if v.err != nil {
		return v.err
	}
	return a.explain("watching clusters", err)
}

// clusterWatchPrinter prints clusters as they change.
type clusterWatchPrinter struct {
	*getOptions
	out             io.Writer
	table           clusterTable
	printedVersions map[string]string // what was printed last of each
	clusterNotFound func(name string) error
	err             error
}

var _ observer = (*clusterWatchPrinter)(nil)

func (v *clusterWatchPrinter) onObject(u *unstructured.Unstructured) (done bool) {
	if !v.isSelected(u.GetName()) || v.printedVersions[objectKey(u)] == u.GetResourceVersion() {
		return false
	}
	v.printedVersions[objectKey(u)] = u.GetResourceVersion()
	if !v.getOptions.out.isHumanReadable() {
		if v.getOptions.out.format == formatYAML {
			fmt.Fprintln(v.out, "---")
		}
		v.err = v.getOptions.out.printObject(v.out, u)
		return v.err != nil
	}
	c, err := fromUnstructured[v1alpha1.WorkloadCluster](u)
	if err != nil {
		v.err = err
		return true
	}
	row := v.table.row(c, time.Now())
	rows := [][]string{row}
	if v.table.widths == nil {
		v.table.reserveWidths()
		rows = [][]string{v.table.header(), row}
	}
	v.err = v.table.print(v.out, rows)
	return v.err != nil
}

func (v *clusterWatchPrinter) onDelete(key string) (done bool) {
	_, name, _ := strings.Cut(key, "/")
	if _, was := v.printedVersions[key]; !was && v.isSelected(name) {
		v.err = v.clusterNotFound(name)
		return true
	}
	if delete(v.printedVersions, key); v.isSelected(name) && v.getOptions.out.isHumanReadable() {
		_, v.err = fmt.Fprintf(v.out, "%s is gone\n", name)
	}
	return v.err != nil
}

// onError is silent: what was printed is still what is known.
func (v *clusterWatchPrinter) onError(error) {}
