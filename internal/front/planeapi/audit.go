package planeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/plane/audit"
)

// maxScanned is how much of the record is looked through for one question.
const maxScanned = 512 << 20

// auditReader answers who did what in a tenant.
type auditReader struct {
	tenants client.Reader
	dataDir string
	planeOf func(*v1alpha1.Tenant) string
	turn    chan struct{} // one question at a time: each may read a lot
}

func (a *auditReader) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, planepath.Audit)
	limit, bad := readLimit(r, 100) //nolint:mnd // a page that can be read
	if bad != nil {
		writeError(w, bad)
		return
	}
	t := &v1alpha1.Tenant{}
	if err := a.tenants.Get(r.Context(), client.ObjectKey{Name: name}, t); err != nil {
		writeError(w, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("tenants").GroupResource(), name))
		return
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-r.Context().Done():
		writeError(w, apierrors.NewTooManyRequests("others are reading the record; try again", 1))
		return
	}
	out := AuditPage{Items: []AuditEvent{}}
	found, all, err := audit.ReadNewest(r.Context(), a.dataDir, audit.Query{
		Limit: limit, MaxBytes: maxScanned, Contains: []string{quoted(t.NamespaceName()), quoted(t.Name)},
		Match: func(e audit.Event) bool { return isOf(e, t) },
	})
	if err != nil {
		writeError(w, apierrors.NewInternalError(err))
		return
	}
	if dir := a.planeOf(t); dir != "" {
		if err := addDetails(r.Context(), found, dir, t); err != nil {
			writeError(w, apierrors.NewInternalError(err))
			return
		}
	}
	out.Truncated = !all
	for _, e := range found {
		out.Items = append(out.Items, newEvent(e))
	}
	writeJSON(w, out)
}

// addDetails adds to events what only the tenant's own plane knows of the same requests: what was asked for, how it is
// called, and why that plane refused it.
func addDetails(ctx context.Context, events []audit.Event, dir string, t *v1alpha1.Tenant) error {
	its, _, err := audit.ReadNewest(ctx, dir, audit.Query{
		Limit: 2 * len(events), MaxBytes: maxScanned, Contains: []string{quoted(t.NamespaceName())}, //nolint:mnd // some are not here
		Match: func(e audit.Event) bool { return e.Namespace == t.NamespaceName() },
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has never run
	}
	if err != nil {
		return err
	}
	byID := map[string]*audit.Event{}
	for i := range its {
		byID[its[i].ID] = &its[i]
	}
	for i := range events {
		if e := byID[events[i].ID]; e != nil {
			events[i].Request, events[i].Name = e.Request, cmp.Or(events[i].Name, e.Name)
			events[i].Reason = cmp.Or(events[i].Reason, e.Reason)
		}
	}
	return nil
}

func quoted(s string) string { return `"` + s + `"` }

// isOf says whether an event is the tenant's to know: what was done to what it has, since it is there. Who else has
// tried in vain is nobody's business but the operator's: it would tell a tenant the names of others.
func isOf(e audit.Event, t *v1alpha1.Tenant) bool {
	switch {
	case e.Time.Before(t.CreationTimestamp.Time): // of an earlier one, who had the same name
		return false
	case e.Namespace != t.NamespaceName() && (e.Namespace != "" || e.Resource != "tenants" || e.Name != t.Name):
		return false
	}
	return !e.IsRefused() || Belongs(t, e.User, e.Groups)
}

func newEvent(e audit.Event) AuditEvent {
	out := AuditEvent{
		Time: e.Time, User: e.User, As: e.As, Verb: e.Verb, Object: e.Resource, Status: e.Code, Refusal: e.Reason,
	}
	if e.Group != "" {
		out.Object += "." + e.Group
	}
	if e.Name != "" {
		out.Object += "/" + e.Name
	}
	var q struct {
		Spec struct {
			ClusterName string `json:"clusterName"`
			Role        string `json:"role"`
		} `json:"spec"`
	}
	if e.Resource == "kubeconfigrequests" && json.Unmarshal(e.Request, &q) == nil && q.Spec.ClusterName != "" {
		out.Details = fmt.Sprintf("%s of %s", q.Spec.Role, q.Spec.ClusterName)
	}
	return out
}
