package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/testenv"
)

const addonName = csv1.AddonPrefix + "walk"

// TestAddons looks at all that can happen to add-ons in one real cluster, one after the other.
func TestAddons(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", addonCharts(t, twin))
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	w.makeCluster(t, "1.36", "v1")
	w.addonsAre(t, "v1")
	w.advises(t, &csv1.ClusterAddon{}, addonName, csv1.Nobody)
	w.workload = testenv.NewClient(t, testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name))
	// The steps are not parallel, and each begins where the one before it ends.
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"objects of all kinds and namespaces", w.objectsAreThere},
		{"hooks are run in their order", w.hooksWereRun},
		{"what was changed by hand is corrected", w.workloadDriftIsCorrected},
		{"one object fails", w.oneObjectFails},
		{"an object belongs to somebody else", w.objectIsSomebodyElses},
		{"an object belongs to kubeadm", w.objectIsKubeadms},
		{"a repaired release", w.releaseIsRepaired},
		{"values are corrected while a stage waits", w.valuesAreCorrected},
		{"a kubeconfig that runs a program", w.kubeconfigRunsAProgram},
	} {
		if !t.Run(step.name, step.run) {
			break
		}
	}
}

// addonsAre waits until the add-ons are those of a version.
func (w *walk) addonsAre(t *testing.T, v string) *csv1.ClusterAddon {
	t.Helper()
	return w.addonsFrom(t, "local-scs-1-36-"+v)
}

func (w *walk) addonsFrom(t *testing.T, release string) *csv1.ClusterAddon {
	t.Helper()
	var a *csv1.ClusterAddon
	testenv.Eventually(t, create, func() (err error) {
		if a, err = w.addon(t.Context()); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, csv1.ConditionReady) || a.Status.Release != w.ns+"/"+release {
			return fmt.Errorf("add-ons of %q: %v, %v", a.Status.Release, a.Status.Stages, a.Status.Conditions)
		}
		return nil
	})
	for _, r := range a.Status.Resources {
		if r.Status != csv1.ResourceSynced {
			t.Errorf("the add-ons are ready and %v is not synced", r)
		}
	}
	return a
}

func widgetNamed(name string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("example.com/v1")
	u.SetKind("Widget")
	u.SetNamespace("things")
	u.SetName(name)
	return u
}

func mapNamed(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// inCluster reads an object of the workload cluster.
func (w *walk) inCluster(t *testing.T, o client.Object) error {
	return w.workload.Get(t.Context(), client.ObjectKeyFromObject(o), o)
}

func (w *walk) has(t *testing.T, want bool, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.inCluster(t, o); client.IgnoreNotFound(err) != nil || (err == nil) != want {
			t.Errorf("%T %s/%s: there %t, want %t: %v", o, o.GetNamespace(), o.GetName(), err == nil, want, err)
		}
	}
}

func (w *walk) objectsAreThere(t *testing.T) {
	same := metav1.ObjectMeta{Namespace: "things", Name: "same"}
	w.has(t, true, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "things"}}, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
	},
		widgetNamed("early"), &corev1.ConfigMap{ObjectMeta: same}, &corev1.ServiceAccount{ObjectMeta: same}, mapNamed("kube-public", "gone"))
	// A chart of a later stage knows the kinds of an earlier one.
	w.has(t, true, widgetNamed("late"))
	w.has(t, false, mapNamed("things", "unknown"))
	// A default of the class is a value, though the cluster does not set it.
	greeting := mapNamed("things", "greeting")
	if err := w.inCluster(t, greeting); err != nil || greeting.Data["greeting"] != "hello" {
		t.Errorf("the add-on greets with %v: %v", greeting.Data, err)
	}
}

// hooksWereRun checks in which order Helm hooks were applied, by the resource versions of objects that nobody has
// changed since: they grow.
func (w *walk) hooksWereRun(t *testing.T) {
	var order []string
	made := map[string]int{}
	for _, name := range []string{"after", "no-hook", "a-second", "z-first"} {
		c := mapNamed("default", name)
		if err := w.inCluster(t, c); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(c.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		made[name] = n
		order = append(order, name)
	}
	slices.SortFunc(order, func(a, b string) int { return made[a] - made[b] })
	if got, want := strings.Join(order, " "), "z-first a-second no-hook after"; got != want {
		t.Errorf("applied as %s, want %s", got, want)
	}
	w.has(t, false, mapNamed("default", "brief"), mapNamed("default", "never"))
}

// greet changes a value of the add-ons, which has all of them applied again.
func (w *walk) greet(t *testing.T, greeting string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	if err := w.mgmt.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), c); err != nil {
		t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Spec.Topology.Variables = slices.DeleteFunc(c.Spec.Topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == "greeting" })
	value, err := json.Marshal(greeting)
	if err != nil {
		t.Fatal(err)
	}
	c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, clusterv1.ClusterVariable{Name: "greeting", Value: apiextensionsv1.JSON{Raw: value}})
	if err := w.mgmt.Patch(t.Context(), c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (w *walk) greets(t *testing.T, greeting string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		c := mapNamed("things", "greeting")
		if err := w.inCluster(t, c); err != nil {
			return err
		}
		if c.Data["greeting"] != greeting {
			return fmt.Errorf("it greets with %v, not %s", c.Data, greeting)
		}
		return nil
	})
}

func (w *walk) workloadDriftIsCorrected(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "chance"}}
	if err := w.inCluster(t, secret); err != nil || len(secret.Data["password"]) != 20 || len(secret.Data["cert"]) == 0 {
		t.Fatalf("%v, %v", secret.Data, err)
	}
	version := secret.ResourceVersion
	same := mapNamed("things", "same")
	if err := w.workload.Patch(t.Context(), same, client.RawPatch(client.Merge.Type(), []byte(`{"data":{"kind":"changed"}}`)),
		client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{widgetNamed("early"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "same"}}} {
		if err := w.workload.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.greet(t, "good morning")
	w.greets(t, "good morning")
	testenv.Eventually(t, soon, func() error {
		if err := w.inCluster(t, same); err != nil || same.Data["kind"] != "ConfigMap" {
			return fmt.Errorf("what was changed by hand is %v: %w", same.Data, err)
		}
		if err := w.inCluster(t, widgetNamed("early")); err != nil {
			return err
		}
		return w.inCluster(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "same"}})
	})
	if err := w.inCluster(t, secret); err != nil || secret.ResourceVersion != version {
		t.Errorf("a generated Secret was written again: %v", err)
	}
	w.addonsAre(t, "v1")
}

// upgradeTo publishes a version with more objects, and gives the cluster its class.
func (w *walk) upgradeTo(t *testing.T, v, usable, more string) {
	t.Helper()
	w.publish(t, "1.36", v, addonCharts(t, more))
	w.ask(t, "stack")
	w.becomesReady(t, "stack", usable)
	w.moveTo(t, "1.36", v)
}

// fails waits until the add-ons fail for a reason that everybody can see.
func (w *walk) fails(t *testing.T, v, reason string, words ...string) *csv1.ClusterAddon {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		a, err := w.addon(t.Context())
		if err != nil || a.Status.Target != w.ns+"/local-scs-1-36-"+v {
			return fmt.Errorf("the target is %s: %w", a.Status.Target, err)
		}
		return nil
	})
	a := &csv1.ClusterAddon{}
	w.says(t, a, addonName, csv1.ConditionReady, metav1.ConditionFalse, reason, words...)
	if *a.Status.Ready || a.Status.Release == a.Status.Target {
		t.Errorf("the add-ons are said to be there: ready %t, release %s", *a.Status.Ready, a.Status.Release)
	}
	w.eventOf(t, "ClusterAddon", addonName, "Warning", reason, words[len(words)-1])
	w.eventOf(t, "Cluster", w.cluster.Name, "Warning", reason, words[len(words)-1])
	return a
}

func (w *walk) oneObjectFails(t *testing.T) {
	w.upgradeTo(t, "v2", "v1,v2", twin+invalidObject)
	a := w.fails(t, "v2", csv1.ReasonApplyFailed, "stage base", "Service things/invalid", "spec.ports[0].port")
	w.has(t, true, mapNamed("things", "valid")) // the others are applied
	found := false
	for _, r := range a.Status.Resources {
		if r.Kind == "Service" && r.Name == "invalid" {
			found = true
			if r.Status != csv1.ResourceNotSynced || !strings.Contains(r.Error, "spec.ports[0].port") {
				t.Errorf("the inventory says %+v", r)
			}
		}
	}
	if !found {
		t.Errorf("the inventory lacks what failed: %v", a.Status.Resources)
	}
	// Stages after the one that fails are not begun.
	w.has(t, true, mapNamed("kube-public", "gone"))
}

func (w *walk) objectIsSomebodyElses(t *testing.T) {
	theirs := mapNamed("default", "theirs")
	theirs.Data = map[string]string{"whose": "theirs"}
	if err := w.workload.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	w.upgradeTo(t, "v3", "v2,v3", twin+theirObject)
	w.fails(t, "v3", csv1.ReasonRefused, "stage base", "ConfigMap default/theirs belongs to somebody else (field managers somebody)", "kubectl label")
	w.advises(t, &csv1.ClusterAddon{}, addonName, csv1.StackAuthor, "do what the message says", "publish a new version")
	if err := w.inCluster(t, theirs); err != nil || theirs.Data["whose"] != "theirs" {
		t.Errorf("it is theirs no longer: %v, %v", theirs.Data, err)
	}
}

func (w *walk) objectIsKubeadms(t *testing.T) {
	w.upgradeTo(t, "v4", "v3,v4", twin+kubeadmsObject)
	w.fails(t, "v4", csv1.ReasonRefused, "stage base", "ConfigMap kube-system/kubeadm-config is not allowed: it belongs to kubeadm")
	c := mapNamed("kube-system", "kubeadm-config")
	if err := w.inCluster(t, c); err != nil || c.Data["ClusterConfiguration"] == "evil" || c.Labels[csv1.OwnedLabel] != "" {
		t.Errorf("kubeadm's was changed: %v, %v", c.Data, err)
	}
}

// releaseIsRepaired shows that nothing of what failed is in the way, and what an upgrade does.
func (w *walk) releaseIsRepaired(t *testing.T) {
	watching, err := client.NewWithWatch(testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name), client.Options{Scheme: testenv.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := watching.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	first, second, after := mapNamed("default", "z-first"), mapNamed("default", "a-second"), mapNamed("default", "after")
	w.has(t, true, first, second, after)
	was := map[string]any{"z-first": first.UID, "a-second": second.UID, "after": after.UID}

	w.upgradeTo(t, "v5", "v4,v5", "")
	a := w.addonsAre(t, "v5")
	if a.Status.Hook != "BeforeClusterUpgrade" {
		t.Errorf("the stages were those of %s", a.Status.Hook)
	}
	w.has(t, true, mapNamed("things", "same"), first, second, after, mapNamed("default", "theirs"), widgetNamed("late"))
	// What left the release is gone, also if something of another kind has its name, and what a stage deletes.
	w.has(t, false, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "things", Name: "same"}}, mapNamed("things", "valid"),
		mapNamed("kube-public", "gone"))
	for _, c := range []*corev1.ConfigMap{first, second, after} { // only one of them is a Helm hook of upgrades
		if ran := was[c.Name] != any(c.UID); ran != (c.Name == "a-second") {
			t.Errorf("hook %s was run again: %t", c.Name, ran)
		}
	}
	var happened []watch.EventType
	testenv.Eventually(t, soon, func() error {
		if happened = append(happened, events(seen, "brief")...); !slices.Equal(happened, []watch.EventType{watch.Added, watch.Deleted}) {
			return fmt.Errorf("a hook that is deleted after its success: %v", happened)
		}
		return nil
	})
	w.has(t, false, mapNamed("default", "brief"), mapNamed("default", "never"))
}

// events returns what has happened to an object, as far as it is known by now.
func events(w watch.Interface, name string) (out []watch.EventType) {
	for {
		select {
		case e := <-w.ResultChan():
			if o, ok := e.Object.(*corev1.ConfigMap); ok && o.Name == name && e.Type != watch.Modified {
				out = append(out, e.Type)
			}
		default:
			return out
		}
	}
}

// valuesAreCorrected has a stage wait for what only other values of the cluster bring about.
func (w *walk) valuesAreCorrected(t *testing.T) {
	w.publish(t, "1.36", "v6", func(files archive.Tree) {
		addonCharts(t, "")(files)
		const at = "    - {name: base, action: apply}\n"
		text := string(files["clusteraddon.yaml"])
		i := strings.LastIndex(text, at)
		files["clusteraddon.yaml"] = []byte(text[:i] + `    - name: base
      action: apply
      waitForPostCondition:
        objects: [{key: said, apiVersion: v1, kind: ConfigMap, name: greeting, namespace: things}]
        conditions: said.data.greeting == 'the right one'
` + text[i+len(at):])
	})
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v5,v6")
	w.greet(t, "a wrong one")
	w.moveTo(t, "1.36", "v6")
	w.says(t, &csv1.ClusterAddon{}, addonName, csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonStageWaiting, "stage base (waitingForPostCondition) waits",
		"is not true yet")
	w.greets(t, "a wrong one")
	w.greet(t, "the right one")
	w.addonsAre(t, "v6")
	w.greets(t, "the right one")
}

// kubeconfigRunsAProgram gives the cluster a kubeconfig as whoever may write its Secret could. Admission refuses it; one
// that was there before is not used.
func (w *walk) kubeconfigRunsAProgram(t *testing.T) {
	canary := filepath.Join(shared.Get(t).Tree.Home, "canary")
	good, evil := w.kubeconfigs(t, canary)
	w.refusesKubeconfig(t, evil)
	w.storeKubeconfigUnchecked(t, evil)
	w.greet(t, "who is there")
	w.says(t, &csv1.ClusterAddon{}, addonName, csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonUnreachable, "kubeconfig is refused",
		"it runs a program (exec)")
	if _, err := os.Stat(canary); !os.IsNotExist(err) {
		t.Errorf("the program was run: %v", err)
	}
	w.replaceKubeconfig(t, good)
	w.greets(t, "who is there")
	w.addonsAre(t, "v6")
}

// kubeconfigs are the cluster's own, and one that runs a program.
func (w *walk) kubeconfigs(t *testing.T, canary string) (good, evil []byte) {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.get(t, w.cluster.Name+"-kubeconfig", s); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(s.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", Args: []string{"-c", "echo > " + canary},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
	}
	if evil, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	return s.Data["value"], evil
}

// refusesKubeconfig writes a kubeconfig that the API server is to refuse.
func (w *walk) refusesKubeconfig(t *testing.T, value []byte) {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.get(t, w.cluster.Name+"-kubeconfig", s); err != nil {
		t.Fatal(err)
	}
	s.Data["value"] = value
	if err := w.mgmt.Update(t.Context(), s, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "it runs a program (exec)") {
		t.Errorf("it got: %v", err)
	}
}

// storeKubeconfigUnchecked writes a kubeconfig as a plane did that did not check it.
func (w *walk) storeKubeconfigUnchecked(t *testing.T, value []byte) {
	t.Helper()
	var all admissionv1.ValidatingWebhookConfigurationList
	if err := w.mgmt.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	isCheck := func(h admissionv1.ValidatingWebhook) bool { return h.Name == "cluster-secret.polder.dev" }
	at := slices.IndexFunc(all.Items, func(c admissionv1.ValidatingWebhookConfiguration) bool {
		return slices.ContainsFunc(c.Webhooks, isCheck)
	})
	if at < 0 {
		t.Fatal("nobody checks Secrets of clusters")
	}
	c := &all.Items[at]
	checks := c.Webhooks
	write := func(webhooks []admissionv1.ValidatingWebhook) {
		c.Webhooks = webhooks
		if err := w.mgmt.Update(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	write(slices.DeleteFunc(slices.Clone(checks), isCheck))
	defer write(checks)
	w.replaceKubeconfig(t, value)
}

func (w *walk) replaceKubeconfig(t *testing.T, value []byte) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		s := &corev1.Secret{}
		if err := w.get(t, w.cluster.Name+"-kubeconfig", s); err != nil {
			return err
		}
		s.Data["value"] = value
		if err := w.mgmt.Update(t.Context(), s); !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("Cluster API writes it too")
	})
}
