package service

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

var interference = flag.Int("interference", 300, "how many operations TestNonInterference makes")

// kubernetesAs is a client of the plane's own API for somebody whom the issuer knows.
func kubernetesAs(t testing.TB, p *testenv.Plane, name string, groups ...string) restClient {
	t.Helper()
	c := restAs(t, p, name, groups...)
	c.url = "https://" + p.Address(t)
	return c
}

// TestNonInterference makes random operations as one tenant and compares all that another sees, before and after: it is
// the same, to the byte.
func TestNonInterference(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "calm")
	restTenant(t, p, "wild")
	calm, kube := restAs(t, p, "cal", "calm-admins"), kubernetesAs(t, p, "cal", "calm-admins")
	for _, name := range []string{"one", "two"} {
		calm.want(t, 201, "", "PUT", "/tenants/calm/clusters/"+name, clusterFile(name), "Content-Type", yamlType)
	}
	view := func() map[string]string { return viewOf(t, calm, kube) }
	var before map[string]string
	// Until nothing of it moves any more, for longer than it takes until quotas are counted again. It is asked for now
	// and then only: one token may not ask without end.
	const calmDown, pause = 40 * time.Second, 10 * time.Second
	for begin, since := time.Now(), time.Now(); time.Since(since) < calmDown; {
		now := view()
		if d := differences(before, now); len(d) > 0 {
			before, since = now, time.Now()
			if time.Since(begin) > wait {
				t.Fatalf("it does not calm down: %v", d)
			}
		}
		select {
		case <-time.After(pause):
		case <-t.Context().Done():
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &wildTenant{TB: t, p: p, random: rand.New(rand.NewPCG(seed, 0)), tokens: map[string]string{}, codes: map[int]int{}}
	w.rest, w.kube = restAs(t, p, "x"), kubernetesAs(t, p, "x")
	for i := range *interference {
		w.act(i)
		if i%100 != 99 {
			continue
		}
		if d := differences(before, view()); len(d) > 0 {
			t.Fatalf("after %d operations of another: %v", i+1, d)
		}
	}
	t.Logf("%d operations of another, answered %v; %d views are the same", *interference, w.codes, len(before))
}

// viewOf is all that somebody sees of the plane: what is theirs, what is for all, and what is said of what others have.
func viewOf(t testing.TB, rest, kube restClient) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range []string{
		"/me", "/tenants", "/tenants/calm", "/tenants/calm/quota", "/tenants/calm/members", "/tenants/calm/robots", "/tenants/calm/clusters", "/tenants/calm/clusters/one",
		"/tenants/calm/clusters/one/events", "/tenants/calm/clusters/one/machines", "/tenants/calm/clusters/two/addons",
		"/tenants/calm/clusters/one/upgrades", "/stacks", "/stacks?tenant=calm", "/providers",
		"/stacks/scs/schema", "/plane", "/releases", "/version", "/openapi.json", "/tenants/wild", "/tenants/wild/clusters", "/tenants/wild/clusters/c1", "/tenants/wild/audit",
	} {
		a := rest.do(t, "GET", path, "")
		out["REST "+path] = a.String() + a.body
	}
	const own, all = "/apis/polder.dev/v1alpha1", "/namespaces/calm/"
	for _, path := range []string{
		own + all + "workloadclusters", own + all + "kubeconfigrequests", "/api/v1" + all + "events", "/api/v1" + all + "resourcequotas", "/api/v1" + all + "serviceaccounts",
		"/apis/clusterstack.x-k8s.io/v1alpha1" + all + "clusterstacks", own + "/providers", own + "/tenants", own + "/tenants/calm", own + "/tenants/wild", "/api/v1/namespaces",
		own + "/namespaces/wild/workloadclusters", own + "/namespaces/wild/workloadclusters/c1", own + "/workloadclusters", "/api", "/apis", own, "/version", "/metrics",
		"/readyz?verbose",
		"/apis/cluster.x-k8s.io/v1beta2/clusters", "/api/v1/secrets", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/debug/pprof/", "/logs",
	} {
		a := kube.do(t, "GET", path, "")
		out["Kubernetes "+path] = withoutVersions(a)
	}
	// Their own reading is in the record; what they see of all others' is not theirs to see.
	var record struct{ Items []map[string]any }
	rest.want(t, 200, "", "GET", "/tenants/calm/audit?limit=1000", "").into(t, &record)
	for _, e := range record.Items {
		if u := fmt.Sprint(e["user"]); u != "oidc:cal" && !strings.HasPrefix(u, "polder-admin") {
			out["record of "+fmt.Sprint(e)] = ""
		}
	}
	return out
}

// withoutVersions leaves out of a list at which version of the whole store it was made: it tells that something was
// written, and by nobody in particular.
func withoutVersions(a restAnswer) string {
	var l struct {
		Metadata map[string]any
		Items    []json.RawMessage
	}
	if a.code == 200 && json.Unmarshal([]byte(a.body), &l) == nil && l.Items != nil {
		return fmt.Sprintf("200 %s", l.Items)
	}
	return a.String() + a.body
}

func differences(a, b map[string]string) (out []string) {
	for k, v := range b {
		if was, ok := a[k]; !ok || was != v {
			i := 0
			for i < min(len(v), len(was)) && v[i] == was[i] {
				i++
			}
			i = max(0, i-100)
			out = append(out, fmt.Sprintf("%s: …%.300s, it was …%.300s", k, v[min(i, len(v)):], was[min(i, len(was)):]))
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			out = append(out, k+" is gone")
		}
	}
	return out
}

// wildTenant does what comes to mind, with the rights of each of its members, to what it has and to what others have.
type wildTenant struct {
	testing.TB
	p          *testenv.Plane
	random     *rand.Rand
	rest, kube restClient
	tokens     map[string]string
	codes      map[int]int
}

func (w *wildTenant) pick(all ...string) string { return all[w.random.IntN(len(all))] }

func (w *wildTenant) act(i int) {
	w.Helper()
	who := w.pick("admin", "editor", "viewer") + fmt.Sprint(i/50) // one token may not ask so often
	if w.tokens[who] == "" {
		name, groups := "wild-"+who, []string{"none"}
		switch {
		case strings.HasPrefix(who, "admin"):
			groups = []string{"wild-admins"}
		case strings.HasPrefix(who, "editor"):
			name = "wild-editor"
		default:
			name = "wild-viewer"
		}
		w.tokens[who] = issuerOfShared.token(w, time.Hour, name, append(groups, fmt.Sprint("turn-", i/50))...)
	}
	w.rest.token, w.kube.token = w.tokens[who], w.tokens[who]
	tenant, cluster := w.pick("wild", "wild", "wild", "calm"), w.pick("c1", "c2", "c3", "one", "two")
	at, file := "/tenants/"+tenant+"/clusters", clusterFile(cluster)
	kubernetes := "/apis/polder.dev/v1alpha1/namespaces/" + tenant + "/workloadclusters"
	method, path, body, kind, c := http.MethodGet, "", "", yamlType, w.rest
	switch w.random.IntN(14) {
	case 0, 1, 2:
		method, path, body = http.MethodPut, at+"/"+cluster, file
	case 3:
		method, path, body = http.MethodPost, at, file
	case 4, 5:
		method, path = http.MethodDelete, at+"/"+cluster
	case 6:
		method, path, body, kind = http.MethodPatch, at+"/"+cluster, `{"spec":{"workers":[{"name":"a","replicas":`+fmt.Sprint(w.random.IntN(90))+`}]}}`, "application/merge-patch+json"
	case 7:
		method, path, body, kind = http.MethodPost, at+"/"+cluster+"/kubeconfig", `{}`, jsonType
	case 8:
		method, path, body, kind = http.MethodPut, "/tenants/"+tenant+"/robots/"+w.pick("a", "b"), `{"role":"editor"}`, jsonType
	case 9:
		method, path = http.MethodDelete, "/tenants/"+tenant+"/robots/"+w.pick("a", "b")
	case 10:
		path = w.pick("/tenants", at, at+"/"+cluster, "/tenants/"+tenant+"/audit", "/tenants/"+tenant+"/quota", "/plane")
	case 11:
		method, path, body, kind, c = http.MethodPost, kubernetes, strings.Replace(file, "paused: true", "paused: true\n  parameters: {x: 1}", 1), yamlType, w.kube
	case 12:
		space := "/api/v1/namespaces/" + tenant
		method, path, c = w.pick(http.MethodGet, http.MethodDelete), w.pick(kubernetes, kubernetes+"/"+cluster, space+"/secrets", space), w.kube
	case 13:
		method, path, body, kind, c = http.MethodPatch, "/apis/polder.dev/v1alpha1/tenants/"+tenant, w.pick(`{"spec":{"quota":{"clusters":99}}}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"robots":[]}}`), "application/merge-patch+json", w.kube
	}
	a := c.do(w, method, path, body, "Content-Type", kind)
	w.codes[a.code]++
	if strings.Contains(path, "calm") && a.code < 300 {
		w.Errorf("%s %s as %s: %s", method, path, who, a)
	}
}
