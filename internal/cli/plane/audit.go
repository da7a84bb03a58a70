package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/plane/audit"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// auditOptions is one call of polder audit.
type auditOptions struct {
	namespace string
	user      string
	since     time.Duration
	refused   bool
	changes   bool
	format    string
}

// NewAuditCommand is polder audit: it shows who did what in the plane of the data directory.
func NewAuditCommand(g *connect.Globals) *cobra.Command {
	o := &auditOptions{}
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what in the plane, and what was refused",
		Long: `audit shows what people asked of the plane, the oldest first: who did what to which object, who asked for which kubeconfig,
and what was refused. What the plane itself does is not recorded, nor is what Secrets hold. The plane need not run.`,
		Example: `  polder audit --since 1h --refused
  polder audit -n acme --changes
  polder audit --user oidc:alice -o json | jq .`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Plane()
			if err != nil {
				return err
			}
			return o.run(c.OutOrStdout(), p.Dir(), g.Now())
		},
	}
	f := c.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "only what is in this namespace")
	f.StringVar(&o.user, "user", "", "only what this user did")
	f.DurationVar(&o.since, "since", 0, "only the last time, such as 1h (default all)")
	f.BoolVar(&o.refused, "refused", false, "only what was refused")
	f.BoolVar(&o.changes, "changes", false, "only what changes something")
	f.StringVarP(&o.format, "output", "o", "table", "`format`: table, or json for the whole events as Kubernetes writes them, one in each line")
	return c
}

func (o *auditOptions) run(w io.Writer, dataDir string, now time.Time) error {
	if o.format != "table" && o.format != "json" {
		return exit.Errorf(exit.Usage, "-o %q is not known; choose table or json", o.format)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	n := 0
	err := audit.Read(dataDir, func(e audit.Event) error {
		if !o.matches(e, now) {
			return nil
		}
		n++
		if o.format == "json" {
			_, err := fmt.Fprintf(w, "%s\n", e.Raw)
			return err
		}
		if n == 1 {
			fmt.Fprintf(t, "TIME\tUSER\tVERB\tOBJECT\tRESULT\n")
		}
		_, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), output.Sanitize(describeUser(e)),
			output.Sanitize(e.Verb), output.Sanitize(describeObject(e)), output.Sanitize(describeResult(e)))
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return exit.Errorf(exit.Failure, "there is no record in %s; planes keep one since they were started with this version", audit.Dir(dataDir))
	}
	if err != nil {
		return err
	}
	return t.Flush()
}

func (o *auditOptions) matches(e audit.Event, now time.Time) bool {
	switch {
	case o.namespace != "" && e.Namespace != o.namespace && (e.Resource != "namespaces" || e.Name != o.namespace),
		o.user != "" && e.User != o.user && e.As != o.user,
		o.since > 0 && now.Sub(e.Time) > o.since,
		o.refused && !e.IsRefused(),
		o.changes && (e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"):
		return false
	}
	return true
}

func describeUser(e audit.Event) string {
	if e.As != "" && e.As != e.User {
		return e.User + " as " + e.As
	}
	return e.User
}

// describeObject says what was asked for; of a kubeconfig, for which cluster.
func describeObject(e audit.Event) string {
	if e.Resource == "" {
		path, _, _ := strings.Cut(e.Path, "?")
		return path
	}
	text := e.Resource
	if e.Group != "" {
		text += "." + e.Group
	}
	if e.Namespace != "" || e.Name != "" {
		text += " " + strings.Trim(e.Namespace+"/"+e.Name, "/")
	}
	var request struct {
		Spec struct {
			ClusterName string `json:"clusterName"`
			Role        string `json:"role"`
		} `json:"spec"`
	}
	if e.Resource == "kubeconfigrequests" && json.Unmarshal(e.Request, &request) == nil && request.Spec.ClusterName != "" {
		text += fmt.Sprintf(" (%s of %s)", request.Spec.Role, request.Spec.ClusterName)
	}
	return text
}

// describeResult is the status and, of what was refused, why.
func describeResult(e audit.Event) string {
	if e.Reason != "" {
		return fmt.Sprintf("%d %s", e.Code, e.Reason)
	}
	return fmt.Sprint(e.Code)
}
