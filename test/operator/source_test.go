package operator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

func TestSourceWithCredentials(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	behind.set(w.ns, withLogin("somebody", "right-password", newRegistry()))
	w.repository = at(door, w.ns)
	publishAt(t, w.repository, stackregistry.Options{Username: "somebody", Password: "right-password"}, stackenv.BuildShipped(t, "local/scs", "1.36", "v1"))
	source := &csv1.Source{OCI: w.repository, SecretRef: &csv1.SecretReference{Name: "login"}}
	failed := func(reason string, words ...string) {
		t.Helper()
		w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, reason, words...)
		w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionReady, metav1.ConditionFalse, reason, words...)
	}

	w.stack(t, "stack", "1.36", nil)
	failed(csv1.ReasonSourceInvalid, "401")
	w.sourceOf(t, "stack", source)
	failed(csv1.ReasonSourceInvalid, `there is no Secret "login" in namespace `+w.ns, "create it")
	w.secret(t, "login", map[string]string{"username": "somebody"})
	failed(csv1.ReasonSourceInvalid, `Secret "login" has a username and no password`)
	w.secret(t, "login", map[string]string{"username": "somebody", "password": "wrong-password"})
	w.ask(t, "stack")
	failed(csv1.ReasonSourceInvalid, "401")
	w.eventOf(t, "ClusterStack", "stack", "Warning", csv1.ReasonSourceInvalid, "401")
	// Nobody asks: it is tried again by itself.
	w.secret(t, "login", map[string]string{"username": "somebody", "password": "right-password"})
	w.becomesReady(t, "stack", "v1")

	// As docker has them, they are as good.
	publishAt(t, w.repository, stackregistry.Options{Username: "somebody", Password: "right-password"}, stackenv.BuildShipped(t, "local/scs", "1.36", "v2"))
	w.secret(t, "login", map[string]string{".dockerconfigjson": dockerConfig(hostOf(door), "somebody", "wrong-password")})
	w.ask(t, "stack")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceInvalid, "401")
	w.becomesReadyBecause(t, "stack", csv1.ReasonSourceInvalid)
	w.secret(t, "login", map[string]string{".dockerconfigjson": dockerConfig(hostOf(door), "somebody", "right-password")})
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v2")

	w.tellsNobody(t, "wrong-password", "right-password")
}

// becomesReadyBecause waits for a stack that serves what it has, and says what is wrong all the same.
func (w *walk) becomesReadyBecause(t *testing.T, name, reason string) {
	t.Helper()
	w.says(t, &csv1.ClusterStack{}, name, csv1.ConditionReady, metav1.ConditionTrue, reason, "what is there is served, but")
}

func dockerConfig(host, user, password string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// A ClusterStack that names no source has the plane's, with the plane's credentials, which it never sees.
func TestDefaultSource(t *testing.T) {
	t.Parallel()
	repository := strings.ToLower(t.Name())
	behind.set(repository, withLogin("plane", "right-password", newRegistry()))
	publishAt(t, at(door, repository), stackregistry.Options{Username: "plane", Password: "right-password"}, stackenv.BuildShipped(t, "local/scs", "1.36", "v1"))
	tree := testenv.NewTree(t, false)
	file := func(name, text string) string {
		path := filepath.Join(tree.Home, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { // the plane is another user
			t.Fatal(err)
		}
		return path
	}
	p := testenv.NewPlane(t, tree)
	p.Start(t, "--stack-source", at(safe, repository), "--stack-source-ca", file("ca.crt", inPEM(safe.Certificate().Raw)),
		"--stack-docker-config", file("config.json", dockerConfig(hostOf(safe), "plane", "right-password")))
	p.AwaitReady(t)
	w := &walk{mgmt: p.Client(t), ns: p.CreateNamespace(t)}
	w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) { s.Spec.Source = nil })
	w.becomesReady(t, "stack", "v1")
	// Whoever names the same place has no right to it: it is inside, and has a password.
	w.stack(t, "other", "1.37", func(s *csv1.ClusterStack) { s.Spec.Source = &csv1.Source{OCI: at(safe, repository)} })
	w.says(t, &csv1.ClusterStack{}, "other", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceInvalid, "--stack-trust")
	if strings.Contains(p.Log(), "right-password") {
		t.Error("the password is in the log")
	}
}

// tellsNobody checks that secrets are not where everybody can read.
func (w *walk) tellsNobody(t *testing.T, secrets ...string) {
	t.Helper()
	text := shared.Get(t).Log()
	for _, l := range []client.ObjectList{&csv1.ClusterStackList{}, &csv1.ClusterStackReleaseList{}} {
		if err := w.mgmt.List(t.Context(), l, client.InNamespace(w.ns)); err != nil {
			t.Fatal(err)
		}
		b, err := yaml.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s is not kept secret", s)
		}
	}
}

func TestSourceWithItsOwnAuthority(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	behind.set(w.ns, newRegistry())
	publishAt(t, at(door, w.ns), stackregistry.Options{}, stackenv.BuildShipped(t, "local/scs", "1.36", "v1"))
	w.repository = at(safe, w.ns)
	w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) { s.Spec.Source.SecretRef = &csv1.SecretReference{Name: "ca"} })
	w.secret(t, "ca", map[string]string{"ca.crt": "none"})
	w.ask(t, "stack")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceInvalid, "ca.crt that is no certificate")
	w.secret(t, "ca", map[string]string{"ca.crt": stranger(t)})
	w.ask(t, "stack")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceUnreachable, hostOf(safe), "certificate")
	w.secret(t, "ca", map[string]string{"ca.crt": inPEM(safe.Certificate().Raw)})
	w.becomesReady(t, "stack", "v1")
}

// stranger is the certificate of a CA that has signed nothing here.
func stranger(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stranger"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM(der)
}

func inPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestSourceIsMissing(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	stackenv.Publish(t, directory, stackenv.BuildShipped(t, "local/scs", "1.36", "v1"))
	w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) { s.Spec.Source = nil })
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceMissing, "spec.source is missing",
		"name a repository (oci) or a directory")
	w.advises(t, &csv1.ClusterStack{}, "stack", csv1.PlatformOperator, "name a source in spec.source")
	w.sourceOf(t, "stack", &csv1.Source{Directory: "unknown"})
	c := w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceInvalid,
		`there is no directory "unknown" on this plane; there are releases`)
	if strings.Contains(c.Message, directory) {
		t.Errorf("it tells where the directory is: %s", c.Message)
	}
	w.advises(t, &csv1.ClusterStack{}, "stack", csv1.PlatformOperator, "correct spec.source")
	w.sourceOf(t, "stack", &csv1.Source{Directory: "releases"})
	w.becomesReady(t, "stack", "v1")
	w.advises(t, &csv1.ClusterStack{}, "stack", csv1.Nobody)
	w.advises(t, &csv1.ClusterStackRelease{}, "local-scs-1-36-v1", csv1.Nobody)
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionTrue, csv1.ReasonAvailable, "directory releases has 1 release")
}

// What is there is served while the source is away, and what is damaged is restored from disk.
func TestSourceGoesAway(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	there := newRegistry()
	behind.set(w.ns, there)
	w.repository = at(door, w.ns)
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")

	behind.set(w.ns, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { // as if its host had died
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			_ = conn.Close()
		}
	}))
	w.ask(t, "stack")
	s := &csv1.ClusterStack{}
	w.says(t, s, "stack", csv1.ConditionSourceAvailable, metav1.ConditionFalse, csv1.ReasonSourceUnreachable, hostOf(door)+" ended the connection too early")
	w.says(t, s, "stack", csv1.ConditionReady, metav1.ConditionTrue, csv1.ReasonSourceUnreachable, "what is there is served, but", "ended the connection")
	w.becomesReady(t, "stack", "v1")
	w.eventOf(t, "ClusterStack", "stack", "Warning", csv1.ReasonSourceUnreachable, "what is there is served")
	w.classIsRestored(t, "local-scs-1-36-v1")
	c := paused(w.ns, "cluster", "local-scs-1-36-v1", kubernetesOf(t, "1.36"))
	if err := w.mgmt.Create(t.Context(), c, client.DryRunAll); err != nil {
		t.Errorf("no cluster can be made while the source is away: %v", err)
	}

	behind.set(w.ns, there)
	w.publish(t, "1.36", "v2", nil)
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v2")
	w.says(t, s, "stack", csv1.ConditionReady, metav1.ConditionTrue, csv1.ReasonReady)
}

// classIsRestored deletes the class of a release, which must come back.
func (w *walk) classIsRestored(t *testing.T, name string) {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	if err := w.get(t, name, class); err != nil {
		t.Fatal(err)
	}
	was := class.UID
	if err := w.mgmt.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		if err := w.get(t, name, class); err != nil {
			return err
		}
		if class.UID == was {
			return fmt.Errorf("the class is still the one that was deleted")
		}
		return nil
	})
	w.says(t, &csv1.ClusterStackRelease{}, strings.ReplaceAll(name, ".", "-"), csv1.ConditionReady, metav1.ConditionTrue, csv1.ReasonReady)
}

// A release that is wanted and not there yet is taken as soon as somebody asks after it was published.
func TestReleaseIsPublishedLater(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) { s.Spec.Versions = []string{"v2"} })
	rel := &csv1.ClusterStackRelease{}
	w.says(t, rel, "local-scs-1-36-v2", csv1.ConditionDownloaded, metav1.ConditionFalse, csv1.ReasonNotFound, "local-scs-1-36-v2")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonReleasesNotReady, "local-scs-1-36-v2: ")
	const again = "publish it again, or take its version out of spec.versions of ClusterStack "
	w.advises(t, rel, "local-scs-1-36-v2", csv1.StackAuthor, again+w.ns+"/stack")
	w.advises(t, &csv1.ClusterStack{}, "stack", csv1.StackAuthor, "release "+w.ns+"/local-scs-1-36-v2: "+again)
	if rel.Status.Ready == nil || *rel.Status.Ready {
		t.Errorf("a release that is not there is ready: %v", rel.Status)
	}
	w.says(t, &csv1.ClusterStackRelease{}, "local-scs-1-36-v1", csv1.ConditionReady, metav1.ConditionTrue, csv1.ReasonReady)
	w.publish(t, "1.36", "v2", nil)
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v2") // v1 is not needed any more
}

// A namespace with more sources that do not answer than there are workers holds nobody else up: no more than two of its
// sources are asked at once, also when the first ones were given up.
func TestSilentSourcesOfOneNamespace(t *testing.T) {
	t.Parallel()
	w, other := newWalk(t), newWalk(t)
	// A request that the operator gave up ends here a moment later, so that the next two may be here already.
	const all, atOnce, seenAtOnce = 12, 2, 4
	var held, most atomic.Int64
	behind.set(w.ns, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer held.Add(-1)
		for now := held.Add(1); ; {
			if was := most.Load(); now <= was || most.CompareAndSwap(was, now) {
				break
			}
		}
		silently(rw, r)
	}))
	w.repository = at(door, w.ns)
	for i := range all {
		w.stack(t, fmt.Sprintf("stack-%d", i), fmt.Sprintf("1.%d", 20+i), nil)
	}
	waited := map[string]bool{}
	testenv.Eventually(t, soon, func() error {
		var l csv1.ClusterStackList
		if err := w.mgmt.List(t.Context(), &l, client.InNamespace(w.ns)); err != nil {
			return err
		}
		for _, s := range l.Items {
			c := meta.FindStatusCondition(s.Status.Conditions, csv1.ConditionSourceAvailable)
			if c != nil && c.Reason == csv1.ReasonSourceBusy {
				waited[s.Name] = true
			}
		}
		if len(waited) < all-atOnce {
			return fmt.Errorf("only %d of %d said that it was not their turn", len(waited), all)
		}
		return nil
	})
	other.publish(t, "1.36", "v1", nil)
	other.stack(t, "stack", "1.36", nil)
	other.becomesReady(t, "stack", "v1")
	if n := most.Load(); n < atOnce || n > seenAtOnce {
		t.Errorf("%d sources were asked at once, expected %d", n, atOnce)
	}
}
