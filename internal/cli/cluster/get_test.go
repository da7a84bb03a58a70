package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func count(n int32) *int32 { return &n }

func withName(name string) func(*v1alpha1.WorkloadCluster) {
	return func(c *v1alpha1.WorkloadCluster) { c.Name = name }
}

func inNamespace(ns string) func(*v1alpha1.WorkloadCluster) {
	return func(c *v1alpha1.WorkloadCluster) { c.Namespace = ns }
}

func atWork(c *v1alpha1.WorkloadCluster) {
	c.Spec.Provider = "local"
	c.CreationTimestamp = metav1.Time{Time: time.Now().Add(-50*time.Hour - time.Minute)}
	c.Status.Versions = v1alpha1.Versions{Kubernetes: "v1.36.2", WantedKubernetes: "v1.36.2", Release: "local-scs-1-36-v3", WantedRelease: "local-scs-1-36-v4"}
	c.Status.ControlPlane = v1alpha1.Counts{Desired: count(3), Ready: count(2)}
	c.Status.Workers = v1alpha1.Counts{Desired: count(5)}
	c.Status.Endpoint = "https://127.0.0.1:6443"
}

func TestGet(t *testing.T) {
	f := newFakePlane(t,
		aWorkload(v1alpha1.PhaseReady, "all\nis well", atWork),
		aWorkload("", "", withName("a"), func(c *v1alpha1.WorkloadCluster) { c.Status = v1alpha1.WorkloadClusterStatus{} }),
		aWorkload(v1alpha1.PhaseReady, "", withName("b"), leavingNow, inNamespace("team-b")))
	f.expectOutput(exit.OK, `NAME   READY     PHASE     KUBERNETES   PROVIDER   RELEASE                                AGE
a      Unknown   Pending   -            -          -                                      -
demo   True      Ready     v1.36.2      local      local-scs-1-36-v3->local-scs-1-36-v4   2d
`, "", "get")
	if len(f.requests) != 1 || f.requests[0] != "GET "+clusterPath {
		t.Errorf("it asks %v", f.requests)
	}
	f.expectOutput(exit.OK, `NAME   READY   PHASE   KUBERNETES   PROVIDER   RELEASE                                AGE   CONTROL-PLANE   WORKERS   ENDPOINT                 MESSAGE
demo   True    Ready   v1.36.2      local      local-scs-1-36-v3->local-scs-1-36-v4   2d    2/3             0/5       https://127.0.0.1:6443   all is well
`, "", "get", "demo", "-o", "wide")
	if q := f.requests[1]; q != "GET "+clusterPath+"?fieldSelector=metadata.name%3Ddemo" {
		t.Errorf("it asks for one with %s", q)
	}
	f.expectOutput(exit.OK, `NAMESPACE   NAME   READY     PHASE      KUBERNETES   PROVIDER   RELEASE                                AGE
default     a      Unknown   Pending    -            -          -                                      -
default     demo   True      Ready      v1.36.2      local      local-scs-1-36-v3->local-scs-1-36-v4   2d
team-b      b      True      Deleting   -            -          -                                      -
`, "", "get", "-A")
	f.expectOutput(exit.OK, "workloadcluster/a\nworkloadcluster/demo\n", "", "get", "-o", "name")
	f.expectOutput(exit.OK, "workloadcluster/b\n", "", "get", "b", "-o", "name", "-n", "team-b")
	if out, _, code := f.runWithInput("", "get", "demo", "a", "-o", "json"); code != exit.OK ||
		!strings.HasPrefix(out, "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n") || strings.Count(out, `"kind": "WorkloadCluster"`) != 2 {
		t.Errorf("-o json ends with %d:\n%s", code, out)
	}
	if out, _, code := f.runWithInput("", "get", "a", "-o", "yaml"); code != exit.OK ||
		!strings.HasPrefix(out, "apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\n") {
		t.Errorf("-o yaml ends with %d:\n%s", code, out)
	}
	f.expectOutput(exit.Usage, "workloadcluster/a\n", `there is no cluster "x" in namespace default; see which there are with: polder get`, "get", "a", "x", "-o",
		"name")
	f.expectOutput(exit.OK, "", "There are no clusters in namespace empty. Make one with: polder create NAME --stack STACK -n empty\n", "get", "-n", "empty")
	f.expectOutput(exit.Usage, "", "--all-namespaces goes with neither --namespace nor names; leave it out", "get", "-A", "a")
	f.expectOutput(exit.Usage, "", `invalid argument "html" for "-o, --output" flag: choose table, wide, json, yaml or name; see: polder get --help`, "get", "-o",
		"html")
}

func TestGetMany(t *testing.T) {
	f := newFakePlane(t)
	for i := range 500 {
		f.add(aWorkload(v1alpha1.PhaseReady, "", withName(fmt.Sprintf("c%03d", i))))
	}
	begin := time.Now()
	out, _, code := f.runWithInput("", "get")
	if took := time.Since(begin); code != exit.OK || strings.Count(out, "\n") != 501 || len(f.requests) != 1 || took > 5*time.Second {
		t.Errorf("it ends with %d after %s, %d requests and %d lines", code, took, len(f.requests), strings.Count(out, "\n"))
	}
}

// Nobody waits for a cluster whose name is misspelt.
func TestGetWatchMissing(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, ""))
	for _, names := range [][]string{{"demp"}, {"demo", "demp"}} {
		_, errs, code := f.runWithInput("", append([]string{"get", "-w"}, names...)...)
		if code != exit.Usage || errs != `there is no cluster "demp" in namespace default; see which there are with: polder get` {
			t.Errorf("%v: it ends with %d: %s", names, code, errs)
		}
	}
}

func TestGetWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := func(v string) func(*v1alpha1.WorkloadCluster) {
			return func(c *v1alpha1.WorkloadCluster) { c.ResourceVersion = v }
		}
		source := &fakeSource{t: t, steps: []step{
			{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseCreating, "", version("1")), aWorkload(v1alpha1.PhaseReady, "", withName("other"), version("2"))},
				events: []watch.Event{modified(t, aWorkload(v1alpha1.PhaseReady, "", version("3")))}},
			{list: []*v1alpha1.WorkloadCluster{aWorkload(v1alpha1.PhaseReady, "", version("3"))},
				events: []watch.Event{modified(t, aWorkload(v1alpha1.PhaseReady, "", withName("new"), version("4")))}, hang: true},
		}}
		var out bytes.Buffer
		v := &watchPrinter{getOptions: &getOptions{}, out: &out, now: time.Now, printedVersions: map[string]string{}}
		v.getOptions.out.Format = output.FormatTable
		f := &follow.Follower{Source: source, Observer: v, Now: time.Now, KnownKeys: map[string]bool{}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_ = f.Run(ctx)
		want := `NAME                   READY   PHASE       KUBERNETES   PROVIDER   RELEASE                    AGE
demo                   False   Creating    -            -          -                          -
other                  True    Ready       -            -          -                          -
demo                   True    Ready       -            -          -                          -
other is gone
new                    True    Ready       -            -          -                          -
`
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}
