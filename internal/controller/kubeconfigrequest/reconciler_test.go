package kubeconfigrequest

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/workload"
)

func TestAnswerForAKey(t *testing.T) {
	key := ecKey(t, elliptic.P256())
	w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.CertificateRequest = newCSR(t, key, greedy) }))
	if got := w.run(); got != time.Hour-678*time.Nanosecond {
		t.Errorf("looks again after %s", got)
	}
	o := w.request()
	block, rest := pem.Decode([]byte(o.Status.Certificate))
	if block == nil || len(rest) > 0 {
		t.Fatalf("the certificate is %q", o.Status.Certificate)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"polder:alice@example.org", "polder:admin"}, append([]string{c.Subject.CommonName}, c.Subject.Organization...)); d != "" || c.IsCA ||
		len(c.DNSNames) > 0 {
		t.Errorf("it got more than it should, or less: %s", d)
	}
	want := v1alpha1.KubeconfigRequestStatus{
		Certificate: o.Status.Certificate, CertificateAuthority: string(w.crt), Endpoint: "https://192.0.2.1:6443",
		ExpirationTime: ptr.To(metav1.NewTime(c.NotAfter.Local())),
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: "Issued", ObservedGeneration: 1, LastTransitionTime: o.Status.Conditions[0].LastTransitionTime,
			Message: "polder:alice@example.org is admin of cluster prod until 2030-01-02T04:04:05Z; the certificate is in status.certificate",
		}},
	}
	if d := cmp.Diff(want, o.Status); d != "" {
		t.Error(d)
	}
	if w.secret(secretName(o)) != nil {
		t.Error("there is a Secret, though the asker has the key")
	}
	if len(w.appliedRoles) != 4 {
		t.Errorf("granted: %v", w.appliedRoles)
	}
}

func TestAnswerWithASecret(t *testing.T) {
	w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.Role = v1alpha1.RoleViewer }))
	w.run()
	o, s := w.request(), w.secret("mine-access")
	if s == nil || !metav1.IsControlledBy(s, o) || s.Type != corev1.SecretTypeOpaque || len(s.Data) != 1 {
		t.Fatalf("the Secret is %v", s)
	}
	cfg, err := workload.RESTConfigFromKubeconfig(s.Data["value"])
	if err != nil || cfg.Host != o.Status.Endpoint {
		t.Fatalf("the kubeconfig is for %v: %v", cfg, err)
	}
	if o.Status.SecretName != s.Name || o.Status.Certificate != "" || o.Status.CertificateAuthority != string(w.crt) || !isAnswered(o) {
		t.Errorf("the status is %+v", o.Status)
	}
	if m := ready(o).Message; !strings.Contains(m, "is viewer of cluster prod until 2030-01-02T04:04:05Z; the kubeconfig is in Secret mine-access") {
		t.Errorf("the message is %s", m)
	}
}

func TestEventsTellWhoGotAccess(t *testing.T) {
	w := newWorld(t, newRequest())
	w.run()
	if len(w.events.notes) != 2 {
		t.Fatalf("events: %+v", w.events.notes)
	}
	const text = "a certificate for polder:alice@example.org as admin of cluster prod, valid until 2030-01-02T04:04:05Z, was signed for request mine: X509SHA256="
	for i, n := range w.events.notes {
		if sum, ok := strings.CutPrefix(n.Text, text); !ok || len(sum) != 64 {
			t.Errorf("event %d: %s", i, n.Text)
		}
		w.events.notes[i].Text = ""
	}
	if d := cmp.Diff([]note{{"mine", name, "Normal", "Issued", ""}, {name, "mine", "Normal", "Issued", ""}}, w.events.notes); d != "" {
		t.Error(d)
	}
}

func TestAnsweredOnce(t *testing.T) {
	w := newWorld(t, newRequest())
	w.run()
	first, writes, said := w.request(), w.writes, len(w.events.notes)
	w.clock.SetTime(at.Add(30 * time.Minute))
	w.must(w.Live.Delete(t.Context(), w.secret("mine-access"))) // by hand: no new one is issued
	w.must(w.Client.Delete(t.Context(), newCluster()))
	writes += 2
	if got := w.run(); got != 30*time.Minute-678*time.Nanosecond {
		t.Errorf("looks again after %s", got)
	}
	if d := cmp.Diff(first, w.request()); d != "" || w.writes != writes || len(w.events.notes) != said {
		t.Errorf("an answered request is touched: %d writes, events %v, %s", w.writes-writes, w.events.notes[said:], d)
	}
}

func TestLostConditionsComeBack(t *testing.T) {
	w := newWorld(t, newRequest())
	w.run()
	first := w.request()
	stripped := first.DeepCopy()
	stripped.Status.Conditions = nil
	w.must(w.Client.Status().Update(t.Context(), stripped))
	w.run()
	if got := ready(w.request()); got.Message != ready(first).Message || got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", got)
	}
	if w.request().Status.ExpirationTime.Compare(first.Status.ExpirationTime.Time) != 0 {
		t.Error("it was answered again")
	}
}

// A process ends after the Secret is written, before the status is.
func TestDeathBetweenSecretAndStatus(t *testing.T) {
	w := newWorld(t, newRequest())
	w.failStatus = errors.New("the process is gone")
	if err := w.runErr(); !errors.Is(err, w.failStatus) {
		t.Fatalf("got %v", err)
	}
	before := w.secret("mine-access")
	if before == nil || isAnswered(w.request()) {
		t.Fatal("the Secret is not there, or the status is")
	}
	w.failStatus = nil
	w.clock.SetTime(at.Add(10 * time.Minute))
	w.run()
	if d := cmp.Diff(before, w.secret("mine-access")); d != "" {
		t.Errorf("the Secret was written again: %s", d)
	}
	if got := w.request().Status; got.ExpirationTime.Compare(at.Add(time.Hour).Truncate(time.Second)) != 0 || got.SecretName != "mine-access" {
		t.Errorf("the status is %+v", got)
	}
}

func TestUselessSecretOfOursIsWrittenAnew(t *testing.T) {
	o := newRequest()
	for title, value := range map[string]string{"nothing": "", "garbage": "x"} {
		t.Run(title, func(t *testing.T) {
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "mine-access", OwnerReferences: []metav1.OwnerReference{ownerReferenceTo(o)}},
				Data:       map[string][]byte{"value": []byte(value), "more": nil},
			}
			w := newWorld(t, newRequest(), s)
			w.run()
			got := w.secret("mine-access")
			if _, err := workload.RESTConfigFromKubeconfig(got.Data["value"]); err != nil || len(got.Data) != 1 || !isAnswered(w.request()) {
				t.Errorf("it has %d keys: %v", len(got.Data), err)
			}
		})
	}
}

func TestSecretOwnedByOtherIsLeftAlone(t *testing.T) {
	other := newRequest()
	other.UID = "of a request that had this name"
	for title, owners := range map[string][]metav1.OwnerReference{
		"of nobody": nil, "of another": {ownerReferenceTo(other)},
		"owned, not controlled": {{APIVersion: "polder.dev/v1alpha1", Kind: "KubeconfigRequest", Name: "mine", UID: "request"}},
	} {
		t.Run(title, func(t *testing.T) {
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "mine-access", OwnerReferences: owners}, Data: map[string][]byte{"value": []byte("precious")},
			}
			w := newWorld(t, newRequest(), s)
			if got := w.run(); got != pollDelay {
				t.Errorf("looks again after %s", got)
			}
			if got := w.secret(s.Name); string(got.Data["value"]) != "precious" {
				t.Error("it was overwritten")
			}
			w.expectNotReady(v1alpha1.ReasonNotOurs, v1alpha1.ConditionStalled,
				"there is a Secret mine-access that does not belong to this request, and it is left alone; delete it")
			if st := w.request().Status; st.SecretName != "" || len(w.events.notes) > 0 {
				t.Errorf("the status names it, or an event does: %+v", st)
			}
		})
	}
}

func TestKeysStayHere(t *testing.T) {
	for title, csr := range map[string]string{"for a Secret": "", "for a key": newCSR(t, ecKey(t, elliptic.P256()), nil)} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.CertificateRequest = csr }))
			w.run()
			all, err := json.Marshal([]any{w.request(), w.events.notes, w.secret("mine-access")})
			if err != nil {
				t.Fatal(err)
			}
			if leaks(string(all), w.key) {
				t.Error("the authority's key is in the status, an event or the Secret")
			}
			if s := w.secret("mine-access"); s != nil {
				if leaks(string(s.Data["value"]), w.key) {
					t.Error("the authority's key is in the kubeconfig")
				}
				cfg, err := workload.RESTConfigFromKubeconfig(s.Data["value"])
				all, _ = json.Marshal([]any{w.request(), w.events.notes})
				if err != nil || leaks(string(all), cfg.KeyData) {
					t.Errorf("the user's key is in the status or an event: %v", err)
				}
			}
		})
	}
}

func TestAnsweredOnceTheClusterIsReady(t *testing.T) {
	w := newWorld(t, newRequest())
	c := newCluster(func(k *clusterv1.Cluster) { k.Status.Initialization.ControlPlaneInitialized = nil })
	w.must(w.Client.Delete(t.Context(), newCluster()))
	w.must(w.Client.Create(t.Context(), c))
	if got := w.run(); got != resyncDelay {
		t.Errorf("looks again after %s", got)
	}
	w.expectNotReady(v1alpha1.ReasonClusterNotReady, v1alpha1.ConditionReconciling, "not initialized yet")
	if w.secretsRead > 0 {
		t.Error("Secrets are read though nothing can be made of them")
	}
	writes := w.writes
	w.run()
	if w.writes != writes {
		t.Error("waiting writes")
	}
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.must(w.Client.Update(t.Context(), c))
	w.run()
	if o := w.request(); !isAnswered(o) || len(o.Status.Conditions) != 1 {
		t.Errorf("the status is %+v", o.Status)
	}
}
