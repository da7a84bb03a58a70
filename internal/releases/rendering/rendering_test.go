package rendering

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const goodClass = `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: "{{ .Release.Name }}-{{ .Chart.Version }}", namespace: "{{ .Release.Namespace }}"}
spec: {variables: []}
`

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

// release builds a release with a class and one add-on.
func release(t *testing.T, class, addon string) *stack.Release {
	t.Helper()
	chart := func(name, template string) []byte {
		var b bytes.Buffer
		if err := archive.Write(&b, archive.Tree{
			name + "/Chart.yaml": []byte("apiVersion: v2\nname: " + name + "\nversion: v3\n"), name + "/templates/x.yaml": []byte(template),
		}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	r, err := stack.Load("docker-ferrol-1-27-v3", archive.Tree{
		"metadata.yaml": []byte("apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n  clusterStack: v3\n  kubernetes: v1.27.3\n  components:\n    clusterAddon: v3\n"),
		"docker-ferrol-1-27-cluster-class-v3.tgz": chart("docker-ferrol-1-27-cluster-class", class),
		"docker-ferrol-1-27-cluster-addon-v3.tgz": chart("docker-ferrol-1-27-cluster-addon", addon),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The operator refuses what lint would refuse in a source, before anything is installed.
func TestRefuse(t *testing.T) {
	const costly = `{name: a, required: false, schema: {openAPIV3Schema: {type: object, properties: {l: {type: array, items: {type: string}}}, ` +
		`x-kubernetes-validations: [{rule: "self.l.all(a, self.l.all(b, a <= b))"}]}}}`
	const hooks = "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages: "
	for name, tc := range map[string]struct{ class, stages, want string }{
		"a rule that costs too much": {class: strings.Replace(goodClass, "[]", "["+costly+"]", 1), want: "may cost more than 100 times"},
		"an unknown action":          {stages: hooks + "{AfterControlPlaneInitialized: [{name: x, action: install}]}", want: `action "install" of stage "x" is not known`},
		"an unknown hook":            {stages: hooks + "{Sometime: [{name: x, action: apply}]}", want: `hook "Sometime" is not known`},
		"CEL that does not compile": {stages: hooks + "{BeforeClusterUpgrade: [{name: x, action: apply, waitForPreCondition: {objects: [], conditions: x}}]}",
			want: "undeclared reference to 'x'"},
	} {
		t.Run(name, func(t *testing.T) {
			r := release(t, cmp.Or(tc.class, goodClass), object)
			if tc.stages != "" {
				r.Files["clusteraddon.yaml"] = []byte(tc.stages)
				r.Addons.Charts = map[string]archive.Tree{"x": r.Addons.Charts[""]}
				config, err := stack.ParseAddonConfig([]byte(tc.stages))
				if err != nil {
					t.Fatal(err)
				}
				r.Addons.Config = &config
			}
			p := New(1, "")
			var found finding.List
			if _, err := p.RenderClass(t.Context(), r, "a"); !errors.As(err, &found) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("installing: %v", err)
			}
			_, err := p.RenderAddons(t.Context(), r, stack.AddonInput{Record: render.FixedRecord()})
			if tc.stages != "" && (!errors.As(err, &found) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("applying add-ons: %v", err)
			}
		})
	}
}

func TestRender(t *testing.T) {
	p := New(1, "")
	in := stack.AddonInput{Record: render.FixedRecord()}
	const helmTest = "apiVersion: v1\nkind: Pod\nmetadata: {name: probe, annotations: {helm.sh/hook: test}}\n" // is warned of
	good, bad := release(t, goodClass, object+"---\n"+helmTest), release(t, object, "a: {{ fail \"no\" }}")
	objects, err := p.RenderClass(t.Context(), good, "a")
	if err != nil || len(objects) != 1 || objects[0].Kind() != "ClusterClass" || objects[0].Value["metadata"].(map[string]any)["namespace"] != "a" {
		t.Errorf("%v, %v", objects, err)
	}
	stages, err := p.RenderAddons(t.Context(), good, in)
	if err != nil || len(stages) != 2 || len(stages[0].Objects) != 1 {
		t.Errorf("%v, %v", stages, err)
	}
	var found finding.List
	if got, err := p.RenderClass(t.Context(), bad, "a"); got != nil || !errors.As(err, &found) {
		t.Errorf("a release without a class: %v, %v", got, err)
	}
	if _, err := p.RenderAddons(t.Context(), bad, in); !errors.As(err, &found) {
		t.Errorf("a release that cannot be rendered: %v", err)
	}
	if got, err := p.Class(t.Context(), bad, "bad"); got != nil || !errors.As(err, &found) || len(p.cache) != 0 {
		t.Errorf("a release without a class: %v, %v, %v", got, err, p.cache)
	}
	p.renderer.Executable = "/nonexistent"
	if _, err := p.RenderClass(t.Context(), good, "a"); err == nil || errors.As(err, &found) {
		t.Errorf("without a renderer: %v", err)
	}
	if _, err := p.RenderAddons(t.Context(), good, in); err == nil || errors.As(err, &found) {
		t.Errorf("without a renderer: %v", err)
	}
	if len(p.slots) != 0 {
		t.Error("somebody has not left")
	}
}

func TestClassIsRememberedByItsDigest(t *testing.T) {
	p, r := New(1, ""), release(t, goodClass, object)
	first, err := p.Class(t.Context(), r, "one")
	if err != nil || first.Name() != "docker-ferrol-1-27-v3" {
		t.Fatal(first, err)
	}
	p.renderer.Executable = "/nonexistent"
	if again, err := p.Class(t.Context(), r, "one"); err != nil || again != first {
		t.Errorf("it is rendered again: %v, %v", again, err)
	}
	if other, err := p.Class(t.Context(), r, "two"); err == nil {
		t.Errorf("it is taken for another's: %v", other)
	}
}

func TestStoreCached(t *testing.T) {
	p := New(1, "")
	of := func(i int) string { return fmt.Sprint("sha256:", i) }
	first := p.storeCached(of(0), &class.Class{})
	if p.storeCached(of(0), &class.Class{}) != first || len(p.cache) != 1 {
		t.Error("what two have rendered at once is there twice")
	}
	for i := 1; i < maxCachedClasses; i++ {
		p.storeCached(of(i), &class.Class{})
	}
	if p.findCached(of(0)) != first || len(p.cache) != maxCachedClasses {
		t.Errorf("%d are remembered", len(p.cache))
	}
	last := p.storeCached(of(maxCachedClasses), &class.Class{})
	if len(p.cache) != maxCachedClasses || p.findCached(of(0)) != nil || p.findCached(of(1)) == nil || p.findCached(of(maxCachedClasses)) != last {
		t.Error("the oldest must go, and no other")
	}
}

func TestOnlyAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, "")
		var mu sync.Mutex
		inside, most, done := 0, 0, 0
		count := func(in, out int) {
			mu.Lock()
			defer mu.Unlock()
			inside, done = inside+in-out, done+out
			most = max(most, inside)
		}
		free := make(chan struct{})
		for range 5 {
			go func() {
				leave, err := p.acquireSlot(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				count(1, 0)
				<-free
				count(0, 1)
				leave()
			}()
		}
		for range 5 {
			synctest.Wait()
			free <- struct{}{}
		}
		synctest.Wait()
		if most != 2 || done != 5 || len(p.slots) != 0 {
			t.Errorf("%d at a time, %d in all, %d left", most, done, len(p.slots))
		}
	})
}

func TestWhoWaitsCanBeCalledOff(t *testing.T) {
	p := New(1, "")
	leave, err := p.acquireSlot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	errEnd := errors.New("the end")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnd)
	r := &stack.Release{}
	if _, err := p.RenderClass(ctx, r, "a"); !errors.Is(err, errEnd) {
		t.Errorf("error %v", err)
	}
	if _, err := p.Class(ctx, r, "one"); !errors.Is(err, errEnd) {
		t.Errorf("error %v", err)
	}
	if _, err := p.RenderAddons(ctx, r, stack.AddonInput{}); !errors.Is(err, errEnd) {
		t.Errorf("error %v", err)
	}
	leave()
	if len(p.slots) != 0 {
		t.Error("somebody has not left")
	}
}
