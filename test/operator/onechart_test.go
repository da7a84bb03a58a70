package operator

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/testenv"
)

// oneChart makes a stack one of the convention with a single chart and no stages, with this template.
func oneChart(minor, template string) func(archive.Tree) {
	return func(files archive.Tree) {
		for _, name := range files.Names() {
			if strings.HasPrefix(name, "cluster-addon/") || name == "clusteraddon.yaml" {
				delete(files, name)
			}
		}
		files["cluster-addon/Chart.yaml"] = []byte("apiVersion: v2\nname: local-scs-" + minor + "-cluster-addon\nversion: v0\n")
		files["cluster-addon/values.yaml"] = []byte("cluster: none\n")
		files["cluster-addon/templates/all.yaml"] = []byte(template)
		files["cluster-addon-values.yaml"] = []byte("values: |\n  cluster: {{ .Cluster.metadata.name }}\n")
	}
}

func mapOf(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {cluster: {{ .Values.cluster }}}\n---\n"
}

// Stacks with one chart and no stages are upgraded as others are, and their upgrade is held if the chart
// cannot be rendered. What they had before is known without the release it came from.
func TestOneChart(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", oneChart("1-36", mapOf("stays")+mapOf("goes")))
	w.stack(t, "old", "1.36", nil)
	w.becomesReady(t, "old", "v1")
	w.makeCluster(t, "1.36", "v1")
	w.addonsAre(t, "v1")
	w.workload = testenv.NewClient(t, testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name))
	stays := mapNamed("default", "stays")
	w.has(t, true, stays, mapNamed("default", "goes"))
	if stays.Data["cluster"] != w.cluster.Name {
		t.Errorf("the values are not the cluster's: %v", stays.Data)
	}

	w.publish(t, "1.37", "v1", oneChart("1-37", mapOf("stays")+`{{- if eq .Values.cluster "`+w.cluster.Name+`" }}{{ fail "not for this cluster" }}{{ end }}`))
	w.stack(t, "new", "1.37", nil)
	w.becomesReady(t, "new", "v1")
	w.moveTo(t, "1.37", "v1")
	w.isHeldBy(t, "local-scs-1-37-v1", csv1.ReasonInvalid, "not for this cluster")
	w.deleteStack(t, "old")
	w.releaseGoes(t, "local-scs-1-36-v1")
	w.isHeldBy(t, "local-scs-1-37-v1", csv1.ReasonInvalid, "not for this cluster")
	w.has(t, true, mapNamed("default", "goes"))

	w.publish(t, "1.37", "v2", oneChart("1-37", mapOf("stays")))
	w.ask(t, "new")
	w.becomesReady(t, "new", "v1,v2")
	w.moveTo(t, "1.37", "v2")
	testenv.Eventually(t, upgrade, func() error { return w.nodesHave(t, "v1.37.") })
	if a := w.addonsFrom(t, "local-scs-1-37-v2"); a.Status.Hook != "BeforeClusterUpgrade" {
		t.Errorf("the stages were those of %s", a.Status.Hook)
	}
	w.has(t, true, mapNamed("default", "stays"))
	w.has(t, false, mapNamed("default", "goes"))
}

// isHeldBy waits until an upgrade is held for a reason that the ClusterAddon and the Cluster say, and checks that no
// node has another version.
func (w *walk) isHeldBy(t *testing.T, release, reason, why string) {
	t.Helper()
	w.says(t, &csv1.ClusterAddon{}, addonName, csv1.ConditionReady, metav1.ConditionFalse, reason, why)
	testenv.Eventually(t, soon, func() error {
		c := &clusterv1.Cluster{}
		if err := w.mgmt.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), c); err != nil {
			return err
		}
		topology := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
		if topology == nil || !strings.Contains(topology.Message, why) || !strings.Contains(topology.Message, release) {
			return fmt.Errorf("the Cluster does not say why: %v", topology)
		}
		return nil
	})
	if err := w.nodesHave(t, "v1.36."); err != nil {
		t.Errorf("it is upgraded: %v", err)
	}
}

func (w *walk) nodesHave(t *testing.T, version string) error {
	t.Helper()
	var nodes corev1.NodeList
	if err := w.workload.List(t.Context(), &nodes); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if !strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, version) {
			return fmt.Errorf("node %s has %s", n.Name, n.Status.NodeInfo.KubeletVersion)
		}
	}
	return nil
}

func (w *walk) deleteStack(t *testing.T, name string) {
	t.Helper()
	if err := w.mgmt.Delete(t.Context(), &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}); err != nil {
		t.Fatal(err)
	}
}
