package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/exit"
)

// follow prints all there are, and then what changes.
func (q *getting) follow(c *cobra.Command, a *access) error {
	v := &clusterFeed{getting: q, out: c.OutOrStdout(), table: clusterTable{wide: q.out.format == asWide, namespaces: q.all}, versions: map[string]string{}, missing: a.missing}
	f := &follower{source: q.source(a), observer: v, known: map[string]bool{}}
	if !q.all {
		for _, name := range q.names { // one that is not there is gone at the first look
			f.known[a.namespace+"/"+name] = true
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

// clusterFeed prints clusters as they change.
type clusterFeed struct {
	*getting
	out      io.Writer
	table    clusterTable
	versions map[string]string // what was printed last of each
	missing  func(name string) error
	err      error
}

var _ observer = (*clusterFeed)(nil)

func (v *clusterFeed) seen(u *unstructured.Unstructured) (done bool) {
	if !v.wants(u.GetName()) || v.versions[keyOf(u)] == u.GetResourceVersion() {
		return false
	}
	v.versions[keyOf(u)] = u.GetResourceVersion()
	if !v.getting.out.forPeople() {
		if v.getting.out.format == asYAML {
			fmt.Fprintln(v.out, "---")
		}
		v.err = v.getting.out.object(v.out, u)
		return v.err != nil
	}
	c, err := typed[v1alpha1.WorkloadCluster](u)
	if err != nil {
		v.err = err
		return true
	}
	row := v.table.row(c, time.Now())
	rows := [][]string{row}
	if v.table.widths == nil {
		v.table.reserve()
		rows = [][]string{v.table.header(), row}
	}
	v.err = v.table.print(v.out, rows)
	return v.err != nil
}

func (v *clusterFeed) gone(key string) (done bool) {
	_, name, _ := strings.Cut(key, "/")
	if _, was := v.versions[key]; !was && v.wants(name) {
		v.err = v.missing(name)
		return true
	}
	if delete(v.versions, key); v.wants(name) && v.getting.out.forPeople() {
		_, v.err = fmt.Fprintf(v.out, "%s is gone\n", name)
	}
	return v.err != nil
}

// troubled is silent: what was printed is still what is known.
func (v *clusterFeed) troubled(error) {}
