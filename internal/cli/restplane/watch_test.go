package restplane

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWatch lists, and watches from there on: what is told of is what changed since the list, and after that.
func TestWatch(t *testing.T) {
	event := func(kind, name, uid, version string) string {
		return fmt.Sprintf("event: cluster\ndata: {\"type\":%q,\"cluster\":%s}\n\n", kind, cluster(name, uid, version))
	}
	stream := ":\n\n" + event("ADDED", "same", "u1", "1") + event("ADDED", "changed", "u2", "5") + event("ADDED", "anew", "u9", "6") +
		event("ADDED", "new", "u5", "7") + "event: synced\ndata: {}\n\n" + event("MODIFIED", "same", "u1", "8") +
		event("DELETED", "same", "u1", "9") + event("ADDED", "same", "u6", "10")
	ended := "event: problem\ndata: " + problem(401, "", "your token has ended").body + "\n\n"
	list := `{"items":[` + cluster("same", "u1", "1") + "," + cluster("changed", "u2", "2") + "," + cluster("anew", "u3", "3") + "," + cluster("gone", "u4", "4") + `]}`
	for name, tt := range map[string]struct {
		selector, stream string
		list             bool
		want             []string
	}{
		"from a list": {list: true, stream: stream, want: []string{
			"MODIFIED changed u2 5", "DELETED anew u3 3", "ADDED anew u9 6", "ADDED new u5 7", "DELETED gone u4 4",
			"MODIFIED same u1 8", "DELETED same u1 9", "ADDED same u6 10",
		}},
		"one of them": {list: true, selector: "metadata.name=same", stream: stream, want: []string{
			"MODIFIED same u1 8", "DELETED same u1 9", "ADDED same u6 10",
		}},
		"without a list": {stream: event("ADDED", "same", "u1", "1") + "event: synced\ndata: {}\n\n", want: []string{"ADDED same u1 1"}},
		"a problem":      {stream: ended + event("ADDED", "same", "u1", "1"), want: []string{"ERROR Unauthorized"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t, map[string]reply{
				"GET " + acmePath + "/clusters?pageSize=500&pageToken=": {200, list, ""},
				"GET " + acmePath + "/clusters/same":                    {200, cluster("same", "u1", "1"), ""},
				"GET " + acmePath + "/clusters:watch":                   {200, tt.stream, ""},
			})
			c := clustersOf(f.client(t))
			o := metav1.ListOptions{FieldSelector: tt.selector}
			if tt.list {
				l, err := c.List(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				o.ResourceVersion = l.GetResourceVersion()
			}
			w, err := c.Watch(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for e := range w.ResultChan() {
				if e.Type == watch.Error {
					got = append(got, fmt.Sprintf("ERROR %s", apierrors.ReasonForError(apierrors.FromObject(e.Object))))
					continue
				}
				u := e.Object.(*unstructured.Unstructured)
				if u.GetNamespace() != "acme" {
					t.Errorf("%v has no namespace", u)
				}
				got = append(got, fmt.Sprintf("%s %s %s %s", e.Type, u.GetName(), u.GetUID(), u.GetResourceVersion()))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got): %s", diff)
			}
		})
	}
	f := newFakeAPI(t, nil)
	if _, err := clustersOf(f.client(t)).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "77"}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("from a list that nobody knows: %v", err)
	}
}
