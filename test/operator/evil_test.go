package operator

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// A class brings nothing into the plane that it may not bring: then nothing of it is applied, and a
// repaired release is all that is needed.
func TestEvilClassIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object string
		words  []string
	}{
		"a Secret": {"apiVersion: v1\nkind: Secret\nmetadata: {name: evil}\n", []string{
			"Secret NS/evil is not allowed", "a release may only bring", "--stack-kinds",
		}},
		"rights": {
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: evil-NS}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n",
			[]string{"ClusterRole evil-NS is not allowed", "a release may only bring"},
		},
		"a webhook": {
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: evil-NS}\n",
			[]string{"ValidatingWebhookConfiguration evil-NS is not allowed", "a release may only bring"},
		},
		"a definition": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clusters.cluster.x-k8s.io}\n",
			[]string{"CustomResourceDefinition clusters.cluster.x-k8s.io is not allowed", "a release may only bring"},
		},
		"another's namespace": {
			"apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: LocalMachineTemplate\nmetadata: {name: evil-NS, namespace: default}\nspec: {template: {spec: {}}}\n",
			[]string{"LocalMachineTemplate default/evil-NS is not allowed", "only objects of namespace NS are allowed here"},
		},
		"an owner": {
			"apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: LocalMachineTemplate\nmetadata: {name: evil, ownerReferences: [{apiVersion: v1, kind: Secret, name: x, uid: x}]}\nspec: {template: {spec: {}}}\n",
			[]string{"LocalMachineTemplate NS/evil is not allowed", "metadata.ownerReferences"},
		},
		"a finalizer": {
			"apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: LocalMachineTemplate\nmetadata: {name: evil, finalizers: [example.com/x]}\nspec: {template: {spec: {}}}\n",
			[]string{"LocalMachineTemplate NS/evil is not allowed", "metadata.finalizers"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t)
			here := strings.NewReplacer("NS", w.ns)
			w.publish(t, "1.36", "v1", withClass(here.Replace(c.object)))
			w.stack(t, "stack", "1.36", nil)
			var words []string
			for _, word := range c.words {
				words = append(words, here.Replace(word))
			}
			rel := &csv1.ClusterStackRelease{}
			w.says(t, rel, "local-scs-1-36-v1", csv1.ConditionApplied, metav1.ConditionFalse, csv1.ReasonRefused, words...)
			w.says(t, rel, "local-scs-1-36-v1", csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonRefused, words...)
			w.eventOf(t, "ClusterStackRelease", rel.Name, "Warning", csv1.ReasonRefused, words[0])
			w.advises(t, rel, rel.Name, csv1.StackAuthor, "remove the object from the stack and publish a new version")
			if len(rel.Status.Resources) > 0 {
				t.Errorf("something is said to be applied: %v", rel.Status.Resources)
			}
			w.nothingIsApplied(t)

			w.publish(t, "1.36", "v2", nil)
			w.ask(t, "stack")
			w.becomesReady(t, "stack", "v2")
			w.isGone(t, "local-scs-1-36-v1", &csv1.ClusterStackRelease{})
		})
	}
}

// nothingIsApplied checks that nothing the class could have brought is there.
func (w *walk) nothingIsApplied(t *testing.T) {
	t.Helper()
	for _, l := range []client.ObjectList{
		&clusterv1.ClusterClassList{}, &infrav1.LocalMachineTemplateList{}, &infrav1.LocalClusterTemplateList{}, &corev1.SecretList{},
		&rbacv1.ClusterRoleList{}, &admissionv1.ValidatingWebhookConfigurationList{},
	} {
		if err := w.mgmt.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(l, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err != nil {
				return err
			}
			if m.GetNamespace() == w.ns || strings.Contains(m.GetName(), w.ns) {
				t.Errorf("%T %s/%s was applied", o, m.GetNamespace(), m.GetName())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Charts that never end, or never stop to grow, or look where they must not, are stopped; others go on
// meanwhile, and they are not rendered again and again. Not parallel, since it looks at all rendering.
func TestEvilTemplateIsStopped(t *testing.T) {
	evil := map[string]struct{ text, words string }{
		"loops":     {"{{- range until 100000 }}{{- range until 100000 }}{{- end }}{{- end }}", "CPU time and was stopped"},
		"loops-too": {"{{- range until 99999 }}{{- range until 99999 }}{{- end }}{{- end }}", "CPU time and was stopped"},
		"recurses":  {`{{- define "again" }}{{ include "again" . }}{{ end }}{{ include "again" . }}`, "more.yaml"},
		"grows":     {`x: {{ repeat 12000000 "x" }}`, "MiB"},
		"env":       {`x: {{ env "HOME" }}`, `function "env" not defined`},
		"lookup":    {`{{- lookup "v1" "Secret" "" "" | toJson | printf "found %s" | fail }}`, "found {}"},
		"host":      {`{{- getHostByName "localhost" | printf "found %q" | fail }}`, `found ""`},
		"files":     {`x: {{ .Files.Get "../../../../etc/hostname" | required "nothing" }}`, "nothing"},
		"chance":    {`x: {{ randAlphaNum 8 }}`, "randAlphaNum"},
	}
	walks := map[string]*walk{}
	for name, e := range evil {
		w := newWalk(t)
		walks[name] = w
		w.publish(t, "1.36", "v1", withClass(e.text))
		w.stack(t, "stack", "1.36", nil)
	}
	good := newWalk(t)
	good.publish(t, "1.36", "v1", nil)
	good.stack(t, "stack", "1.36", nil)
	good.becomesReady(t, "stack", "v1")
	for name, w := range walks {
		t.Run(name, func(t *testing.T) {
			rel := &csv1.ClusterStackRelease{}
			w.says(t, rel, "local-scs-1-36-v1", csv1.ConditionApplied, metav1.ConditionFalse, csv1.ReasonInvalid, evil[name].words)
			w.nothingIsApplied(t)
		})
	}
	var quiet time.Time
	testenv.Eventually(t, 2*soon, func() error {
		if n := renderings(t); n > 0 || quiet.IsZero() {
			quiet = time.Now()
			return fmt.Errorf("%d charts are being rendered", n)
		}
		if since := time.Since(quiet); since < 4*time.Second {
			return fmt.Errorf("nothing was rendered for only %s", since)
		}
		return nil
	})
}

// renderings counts the children of the plane that render charts.
func renderings(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	parent := fmt.Sprintf("\nPPid:\t%d\n", shared.Get(t).PID())
	for _, f := range files {
		name, _ := os.ReadFile(f) // it may have ended
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "status"))
		if strings.HasPrefix(string(name), "polder-render\x00") && strings.Contains(string(status), parent) {
			n++
		}
	}
	return n
}

// A registry that redirects elsewhere is given up, and the status says so; nobody is connected to who was not named by
// the plane's operator.
func TestEvilRegistryIsGivenUp(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	var page atomic.Int64
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  string
		words   string
	}{
		"redirects in a circle": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, csv1.ReasonSourceInvalid,
			"redirects more than 5 times"},
		"redirects inside":      {redirect("http://" + canary.address() + "/"), csv1.ReasonSourceInvalid, canary.address()},
		"redirects inside too":  {redirect("https://" + canary.address() + "/"), csv1.ReasonSourceInvalid, "loopback address"},
		"redirects to metadata": {redirect("https://169.254.169.254/latest"), csv1.ReasonSourceInvalid, "169.254.169.254 has the link-local address"},
		"redirects to a file":   {redirect("file:///etc/passwd"), csv1.ReasonSourceInvalid, `asked for by "file"`},
		"pages without end": {func(w http.ResponseWriter, r *http.Request) {
			n := page.Add(1)
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, r.URL.Path, n))
			fmt.Fprintf(w, `{"tags":["local-scs-1-36-v%d"]}`, n)
		}, csv1.ReasonSourceUnreachable, "on more than 100 pages"},
		"the same page again": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=x>; rel="next"`, r.URL.Path))
			fmt.Fprint(w, `{"tags":["local-scs-1-36-v1"]}`)
		}, csv1.ReasonSourceUnreachable, "the same tags again and again"},
		"a list without end": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"tags":["`)
			for r.Context().Err() == nil {
				if _, err := w.Write(slices.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		}, csv1.ReasonSourceUnreachable, hostOf(door)},
		"an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }, csv1.ReasonSourceUnreachable, "418"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t)
			behind.set(w.ns, c.handler)
			w.repository = at(door, w.ns)
			w.stack(t, "stack", "1.36", nil)
			w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionReady, metav1.ConditionFalse, c.reason, c.words)
			if n := canary.connections(); n > 0 {
				t.Errorf("the canary was connected to %d times", n)
			}
		})
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// A tenant may not make the plane talk to what is inside.
func TestSourceInsideIsRefused(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	_, port, err := net.SplitHostPort(canary.address())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1.2.3"} {
		for name, secret := range map[string]map[string]string{"": nil, "with an authority": {"ca.crt": stranger(t)}} {
			t.Run(host+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWalk(t)
				w.repository = "oci://" + net.JoinHostPort(strings.Trim(host, "[]"), port) + "/stacks"
				w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) {
					if secret != nil {
						w.secret(t, "ca", secret)
						s.Spec.Source.SecretRef = &csv1.SecretReference{Name: "ca"}
					}
				})
				c := w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonSourceInvalid)
				if c.Message == "" || strings.Contains(c.Message, "\n") {
					t.Errorf("no sentence: %q", c.Message)
				}
				if n := canary.connections(); n > 0 {
					t.Errorf("the canary was connected to %d times", n)
				}
			})
		}
	}
}

// canary is a listener that nobody should connect to.
type canary struct {
	listener net.Listener
	n        atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &canary{listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			c.n.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return c
}

func (c *canary) address() string    { return c.listener.Addr().String() }
func (c *canary) connections() int64 { return c.n.Load() }
