package operator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// Manifests as the operator that came before takes them, with all its fields.
const (
	theirStack = `
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStack
metadata: {name: theirs}
spec:
  provider: local
  name: scs
  kubernetesVersion: "1.36"
  channel: stable
  autoSubscribe: true
  noProvider: false
  providerRef:
    apiVersion: infrastructure.clusterstack.x-k8s.io/v1alpha1
    kind: LocalClusterStackReleaseTemplate
    name: template
  versions: [v1]
`
	theirRelease = `
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStackRelease
metadata: {name: local-scs-1-37-v1}
spec:
  providerRef: {apiVersion: infrastructure.clusterstack.x-k8s.io/v1alpha1, kind: LocalClusterStackRelease, name: local-scs-1-37-v1}
`
	theirAddon = `
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterAddon
metadata:
  name: cluster-addon-old
  annotations: {ClusterAddonStage: upgraded}
  finalizers: [clusteraddon.clusterstack.x-k8s.io]
spec:
  clusterRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, name: old}
  clusterStack: local-scs-1-36-v0
  version: v0
  hook: BeforeClusterUpgrade
`
)

// create creates a manifest in which every field must be known.
func (w *walk) create(t *testing.T, manifest string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(w.ns)
	if change != nil {
		change(u)
	}
	strict := client.WithFieldValidation(w.mgmt, metav1.FieldValidationStrict)
	if err := strict.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestManifestsOfTheOperatorThatCameBefore(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", nil)
	theirs := w.create(t, theirStack, nil)
	s := &csv1.ClusterStack{}
	w.says(t, s, "theirs", csv1.ConditionProviderRefIgnored, metav1.ConditionTrue, csv1.ReasonNotActedOn, "spec.providerRef is accepted and not acted on")
	w.sourceOf(t, "theirs", &csv1.Source{OCI: w.repository})
	w.becomesReady(t, "theirs", "v1")

	rel := &csv1.ClusterStackRelease{}
	w.create(t, theirRelease, nil)
	w.says(t, rel, "local-scs-1-37-v1", csv1.ConditionProviderRefIgnored, metav1.ConditionTrue, csv1.ReasonNotActedOn)

	// What they kept in the spec does not matter: the release is that of the cluster's class.
	w.create(t, theirAddon, nil)
	if err := w.mgmt.Create(t.Context(), paused(w.ns, "old", "local-scs-1-36-v1", kubernetesOf(t, "1.36"))); err != nil {
		t.Fatal(err)
	}
	a := &csv1.ClusterAddon{}
	w.says(t, a, csv1.AddonPrefix+"old", csv1.ConditionClusterReady, metav1.ConditionFalse, "Paused")
	if len(a.OwnerReferences) != 1 || a.OwnerReferences[0].Name != "old" || len(a.Finalizers) > 0 {
		t.Errorf("the ClusterAddon is not taken over: %v, %v", a.OwnerReferences, a.Finalizers)
	}
	if a.Spec.ClusterStack != "local-scs-1-36-v0" || a.Spec.Hook != "BeforeClusterUpgrade" {
		t.Errorf("state is kept in the spec: %+v", a.Spec)
	}

	for field, value := range map[string]any{"provider": "other", "name": "other", "kubernetesVersion": "1.37", "channel": "custom"} {
		changed := theirs.DeepCopy()
		if err := w.get(t, "theirs", changed); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(changed.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
		if err := w.mgmt.Update(t.Context(), changed, client.DryRunAll); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), field+" cannot be changed; make another ClusterStack") {
			t.Errorf("changing %s: %v", field, err)
		}
	}
	w.columns(t)
}

// columns compares what kubectl shows with what it showed before.
func (w *walk) columns(t *testing.T) {
	t.Helper()
	p := shared.Get(t)
	for resource, c := range map[string]struct{ header, row string }{
		"csk": {"NAME PROVIDER CLUSTERSTACK K8S CHANNEL AUTOSUBSCRIBE USABLE LATEST AGE REASON MESSAGE",
			`theirs local scs 1.36 stable true v1 local-scs-1-36-v1 \| ` + regexp.QuoteMeta(kubernetesOf(t, "1.36")) + ` \S+ Ready`},
		"cskr":   {"NAME K8S VERSION READY AGE REASON MESSAGE", `local-scs-1-36-v1 ` + regexp.QuoteMeta(kubernetesOf(t, "1.36")) + ` true \S+ Ready`},
		"caddon": {"NAME CLUSTER RELEASE TARGET READY AGE REASON MESSAGE", `cluster-addon-old old false \S+ Paused the cluster is paused`},
	} {
		out, err := p.Tree.Command("polder", "--data-dir", p.Data, "kubectl", "get", resource, "-n", w.ns).CombinedOutput()
		if err != nil {
			t.Errorf("kubectl get %s: %v\n%s", resource, err, out)
			continue
		}
		text := regexp.MustCompile(`[ \t]+`).ReplaceAllString(string(out), " ")
		header, _, _ := strings.Cut(text, "\n")
		if strings.TrimSpace(header) != c.header || !regexp.MustCompile("(?m)^"+c.row).MatchString(text) {
			t.Errorf("kubectl get %s shows\n%s\nwant the header %s and a row %s", resource, text, c.header, c.row)
		}
	}
}

// Metrics say how many objects are in which state, without naming any of them, and drop those that are
// gone. Not parallel, since it counts.
func TestStackMetrics(t *testing.T) {
	w := newWalk(t)
	const series = `polder_stack_objects{kind="ClusterStack",ready="False",reason="SourceMissing"}`
	before := metric(t, series)
	for _, name := range []string{"one", "two", "three"} {
		w.stack(t, name, "1.36", func(s *csv1.ClusterStack) { s.Spec.Source = nil })
	}
	for _, name := range []string{"one", "two", "three"} {
		w.says(t, &csv1.ClusterStack{}, name, csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonSourceMissing)
	}
	w.counts(t, series, before+3)
	text := metrics(t)
	for _, line := range regexp.MustCompile(`(?m)^polder_stack_objects\{.*$`).FindAllString(text, -1) {
		if !regexp.MustCompile(`^polder_stack_objects\{kind="Cluster(Stack|StackRelease|Addon)",ready="(True|False|Unknown)",reason="[A-Za-z]+"\} \d+$`).MatchString(line) {
			t.Errorf("labels are not bounded: %s", line)
		}
	}
	if strings.Contains(text, w.ns) {
		t.Errorf("a metric has the name of a namespace")
	}
	if err := w.deleteStacks(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.counts(t, series, before)
	if before == 0 && strings.Contains(metrics(t), series) {
		t.Errorf("%s stays though nothing is in that state", series)
	}
}

func (w *walk) counts(t *testing.T, series string, want int) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		if got := metric(t, series); got != want {
			return fmt.Errorf("%s is %d, want %d", series, got, want)
		}
		return nil
	})
}

// metric is the value of a series; zero if there is none.
func metric(t *testing.T, series string) int {
	t.Helper()
	_, after, ok := strings.Cut(metrics(t), series+" ")
	if !ok {
		return 0
	}
	text, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func metrics(t *testing.T) string {
	t.Helper()
	return shared.Get(t).GetPath(t, "/metrics/controllers")
}
