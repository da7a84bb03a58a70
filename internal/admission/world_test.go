package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/scsvars"
)

var errBroken = errors.New("broken")

// stubProvider has two sizes and can be made to fail.
type stubProvider struct{ breaks bool }

func (stubProvider) Describe() provider.Description {
	return provider.Description{
		Name: "local", MachineTypes: []v1alpha1.MachineType{{Name: "small", CPU: 1, MemoryMiB: 2048}, {Name: "large", CPU: 4, MemoryMiB: 8192}},
	}
}

func (p stubProvider) Validate(_ context.Context, in provider.Input) field.ErrorList {
	if p.breaks {
		panic("oh")
	}
	return scsvars.Validate(p.Describe(), in)
}

func (p stubProvider) Topology(_ context.Context, in provider.Input) (provider.Topology, error) {
	return scsvars.Topology(p.Describe(), in)
}

func guarded(p provider.Provider) map[string]*guard.Guard {
	g, err := guard.New(context.Background(), p, time.Minute)
	if err != nil {
		panic(err)
	}
	return map[string]*guard.Guard{"local": g}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), clusterv1.AddToScheme(s), csv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// world is a plane with a provider, and a stack for Kubernetes 1.36.
type world struct {
	objects   map[string]client.Object
	providers map[string]*guard.Guard
	failing   any // list or object whose reading fails
}

func newWorld() *world {
	w := &world{objects: map[string]client.Object{}, providers: guarded(stubProvider{})}
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	p.Status.Zones = []string{"north", "south"}
	p.Status.Parameters = &provider.JSON{Raw: []byte(`{"costCentre":{"type":"string","pattern":"^[0-9]+$"}}`)}
	w.add(p, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	w.line("1.36", "v1.36.3")
	return w
}

func (w *world) add(objects ...client.Object) *world {
	for _, o := range objects {
		w.objects[reflect.TypeOf(o).Elem().Name()+"/"+o.GetName()] = o
	}
	return w
}

func (w *world) without(keys ...string) *world {
	for _, k := range keys {
		delete(w.objects, k)
	}
	return w
}

// line adds a stack for a minor, with its release v1 and that release's class.
func (w *world) line(minor, exact string) *world {
	name := "local-scs-" + strings.ReplaceAll(minor, ".", "-")
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: minor, Channel: csv1.ChannelStable}
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name + "-v1"}}
	r.Status.Ready, r.Status.KubernetesVersion = ptr.To(true), exact
	return w.add(s, r, class(name+"-v1", nil))
}

// class makes a ClusterClass with variables for sizes, for mirrors, and a number, beside others.
func class(name string, others map[string]clusterv1.JSONSchemaProps) *clusterv1.ClusterClass {
	c := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	add := func(name string, required bool, s clusterv1.JSONSchemaProps) {
		c.Spec.Variables = append(c.Spec.Variables, clusterv1.ClusterClassVariable{
			Name: name, Required: ptr.To(required), Schema: clusterv1.VariableSchema{OpenAPIV3Schema: s},
		})
	}
	add("flavor", true, clusterv1.JSONSchemaProps{Type: "string"})
	add("mirrors", false, clusterv1.JSONSchemaProps{Type: "array",
		Items: &clusterv1.JSONSchemaProps{Type: "object", Properties: map[string]clusterv1.JSONSchemaProps{
			"urlMirror": {Type: "string"}, "hostname": {Type: "string"},
		}}})
	add("retries", false, clusterv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To[int64](1), Default: ptr.To(provider.JSON{Raw: []byte("3")})})
	for n, s := range others {
		add(n, true, s)
	}
	return c
}

func (w *world) checker(t *testing.T) *admission.Checker {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme(t))
	for _, o := range w.objects {
		b.WithObjects(o)
	}
	same := func(o any) bool { return reflect.TypeOf(o) == reflect.TypeOf(w.failing) }
	all := interceptor.NewClient(b.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if same(o) {
				return errBroken
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if same(l) {
				return errBroken
			}
			return c.List(ctx, l, opts...)
		},
	})
	return &admission.Checker{
		Client: all, Live: all, Providers: w.providers, Reservations: &quota.Reservations{Clock: clock.RealClock{}},
	}
}

// running makes a Cluster at a version of Kubernetes.
func running(version string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "demo"}}
	c.Spec.Topology.Version = version
	return c
}

// cluster makes a WorkloadCluster without errors.
func cluster(changes ...func(*v1alpha1.WorkloadCluster)) *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "demo"}}
	o.Spec = v1alpha1.WorkloadClusterSpec{
		Provider:     "local",
		Stack:        v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelStable},
		ControlPlane: v1alpha1.ControlPlane{Replicas: ptr.To[int32](1), MachineSelection: v1alpha1.MachineSelection{MachineType: "small"}},
		Network:      v1alpha1.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/16"}},
		Workers:      []v1alpha1.WorkerPool{{Name: "default"}},
	}
	for _, change := range changes {
		change(o)
	}
	return o
}

func errorTexts(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

func parameter(name string, value any) func(*v1alpha1.WorkloadCluster) {
	return func(o *v1alpha1.WorkloadCluster) {
		raw, err := json.Marshal(value)
		if err != nil {
			raw = []byte("{")
		}
		if o.Spec.Parameters == nil {
			o.Spec.Parameters = map[string]provider.JSON{}
		}
		o.Spec.Parameters[name] = provider.JSON{Raw: raw}
	}
}
