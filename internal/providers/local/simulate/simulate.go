// Package simulate keeps the nodes of a local cluster alive and makes their ordinary pods look
// as if they ran, with kwok's controllers. kwok does not end what it starts, so this runs in the
// process of one cluster only, which ends with the cluster. What a pod's status becomes is decided
// here, and when in stages/.
package simulate

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/kubelet"
)

// Config says which cluster to simulate.
type Config struct {
	REST *rest.Config // with the rights to write nodes, pods and leases
	ID   string       // who holds the nodes' leases
	CIDR string       // addresses for pods on nodes that have none of their own
}

//go:embed stages/*.yaml
var podStages embed.FS

// leaseSeconds is the duration of a node's lease, a kubelet's default.
const leaseSeconds = 40

// Start runs the simulation until ctx ends.
func Start(ctx context.Context, cfg Config) error {
	documents, err := readStages()
	if err != nil {
		return err
	}
	stages, err := parseStages(append(documents, podfast.DefaultPodDelete, nodefast.DefaultNodeInit,
		nodelease.DefaultNodeHeartbeatWithLease)...)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(cfg.REST)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(cfg.REST)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(typed.Discovery())
	if err != nil {
		return fmt.Errorf("reading what the cluster serves: %w", err)
	}
	// Only nodes of machines that are switched on are managed: the others must miss their heartbeats and become not
	// ready.
	c, err := controllers.NewController(controllers.Config{
		Clock:                        clock.RealClock{},
		TypedClient:                  typed,
		DynamicClient:                dyn,
		RESTClient:                   typed.Discovery().RESTClient(),
		RESTMapper:                   restmapper.NewDiscoveryRESTMapper(groups),
		ManageNodesWithLabelSelector: kubelet.RunningLabel + "=true",
		// Mirror pods show real processes; their status is not ours.
		DisregardStatusWithAnnotationSelector: corev1.MirrorPodAnnotationKey,
		CIDR:                                  cfg.CIDR,
		NodePort:                              kubelet.Port,
		LocalStages:                           stages,
		FuncMap:                               templateFunctions(clock.RealClock{}),
		PodPlayStageParallelism:               4,
		NodePlayStageParallelism:              4,
		NodeLeaseDurationSeconds:              leaseSeconds,
		NodeLeaseParallelism:                  4,
		PodsOnNodeSyncParallelism:             4,
		ID:                                    cfg.ID,
	})
	if err != nil {
		return err
	}
	return c.Start(log.NewContext(ctx, log.NewLogger(io.Discard, log.LevelError))) // it reports every pod it touches
}

// readStages reads our own stages, those of pods.
func readStages() ([]string, error) {
	files, err := fs.Glob(podStages, "stages/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		b, err := podStages.ReadFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, string(b))
	}
	return out, nil
}

// parseStages reads stages, by the kind they are for.
func parseStages(documents ...string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	out := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, d := range documents {
		s := &v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(d), s); err != nil {
			return nil, fmt.Errorf("reading a stage: %w", err)
		}
		internal, err := internalversion.ConvertToInternalStage(s)
		if err != nil {
			return nil, fmt.Errorf("reading stage %s: %w", s.Name, err)
		}
		ref := internal.Spec.ResourceRef
		out[ref] = append(out[ref], internal)
	}
	return out, nil
}
