package lineage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/stack/version"
)

// indexer adds indexes to a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.WithIndex(o, field, f)
	return nil
}

func newReader(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), csv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := lineage.IndexClustersByClass(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// failingReader fails every request with errBroken.
func failingReader(t *testing.T) client.Reader {
	return interceptor.NewClient(newReader(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errBroken
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errBroken
		},
	})
}

func newCluster(namespace, name, classNamespace, class string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.Topology.ClassRef = clusterv1.ClusterClassRef{Namespace: classNamespace, Name: class}
	return c
}

func newStack(name string, change func(*csv1.ClusterStack)) *csv1.ClusterStack {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}}
	s.Spec = csv1.ClusterStackSpec{Provider: "docker", Name: "ferrol", KubernetesVersion: "1.27", Channel: csv1.ChannelStable}
	if change != nil {
		change(s)
	}
	return s
}

func newRelease(name string, owner *csv1.ClusterStack) *csv1.ClusterStackRelease {
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	if owner != nil {
		r.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStack", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)},
		}
	}
	return r
}

func TestClassOfCluster(t *testing.T) {
	for name, c := range map[string]struct {
		cluster *clusterv1.Cluster
		want    string
	}{
		"a class of the same namespace":         {newCluster("a", "c", "", "k"), "a/k"},
		"a class of another namespace":          {newCluster("a", "c", "b", "k"), "b/k"},
		"a cluster without topology":            {&clusterv1.Cluster{}, ""},
		"a namespace of a class without a name": {newCluster("a", "c", "b", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := lineage.ClassOfCluster(c.cluster)
			if ok != (c.want != "") || (ok && got.String() != c.want) {
				t.Errorf("%s, %t; want %q", got, ok, c.want)
			}
		})
	}
}

func TestReleaseOfClass(t *testing.T) {
	for name, c := range map[string]struct{ class, want string }{
		"a stable version is spelled alike":           {"docker-ferrol-1-27-v1", "docker-ferrol-1-27-v1"},
		"the dot of a class is a dash of a release":   {"docker-ferrol-1-27-v0-sha.abc1234", "docker-ferrol-1-27-v0-sha-abc1234"},
		"a class with a dash instead is another's":    {"docker-ferrol-1-27-v0-sha-abc1234", ""},
		"a stack may have dashes":                     {"openstack-scs-two-1-33-v12", "openstack-scs-two-1-33-v12"},
		"a class of somebody else":                    {"quick-start", ""},
		"a class that only begins like one of ours":   {"docker-ferrol-1-27-v1-backup", ""},
		"a class without a version":                   {"docker-ferrol-1-27", ""},
		"a number that we would write in another way": {"docker-ferrol-1-27-v01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := lineage.ReleaseOfClass(client.ObjectKey{Namespace: "a", Name: c.class})
			want := client.ObjectKey{}
			if c.want != "" {
				want = client.ObjectKey{Namespace: "a", Name: c.want}
			}
			if got != want || ok != (c.want != "") {
				t.Errorf("%s, %t; want %q", got, ok, c.want)
			}
		})
	}
}

func TestHasClassInInventory(t *testing.T) {
	r := newRelease("docker-ferrol-1-27-v1", nil)
	r.Status.Resources = []csv1.Resource{
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "ClusterClass", Name: "group"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Other", Name: "kind"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "ClusterClass", Namespace: "a", Name: "class"},
	}
	for name, c := range map[string]struct {
		namespace, name string
		want            bool
	}{
		"its class":                            {"a", "class", true},
		"a class of that name elsewhere":       {"b", "class", false},
		"a class it does not have":             {"a", "other", false},
		"another kind of this name":            {"a", "kind", false},
		"a kind of this name in another group": {"a", "group", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lineage.HasClassInInventory(r, client.ObjectKey{Namespace: c.namespace, Name: c.name}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestOwnsClass(t *testing.T) {
	class := func(owner types.UID) client.Object {
		c := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "class"}}
		if owner != "" {
			c.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStackRelease", Name: "r", UID: owner, Controller: ptr.To(true)},
			}
		}
		return c
	}
	for name, c := range map[string]struct {
		status csv1.ResourceStatus
		have   client.Object
		class  string
		want   bool
	}{
		"it was applied":                        {csv1.ResourceSynced, nil, "class", true},
		"it was applied, whoever took it since": {csv1.ResourceSynced, class("other"), "class", true},
		"it is not among its objects":           {csv1.ResourceSynced, nil, "other", false},
		"it is not there yet":                   {csv1.ResourceNotSynced, nil, "class", true},
		"it is there, and the release's":        {csv1.ResourceNotSynced, class("release"), "class", true},
		"it is there, and of another":           {csv1.ResourceNotSynced, class("other"), "class", false},
		"it is there, and nobody's":             {"", class(""), "class", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease("docker-ferrol-1-27-v1", nil)
			r.UID = "release"
			r.Status.Resources = []csv1.Resource{{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "ClusterClass", Namespace: "a", Name: "class", Status: c.status}}
			var objects []client.Object
			if c.have != nil {
				objects = append(objects, c.have)
			}
			got, err := lineage.OwnsClass(t.Context(), newReader(t, objects...), r, client.ObjectKey{Namespace: "a", Name: c.class})
			if err != nil || got != c.want {
				t.Errorf("%t, %v; want %t", got, err, c.want)
			}
		})
	}
	r := newRelease("docker-ferrol-1-27-v1", nil)
	r.Status.Resources = []csv1.Resource{{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "ClusterClass", Namespace: "a", Name: "class"}}
	if got, err := lineage.OwnsClass(t.Context(), failingReader(t), r, client.ObjectKey{Namespace: "a", Name: "class"}); got || !errors.Is(err, errBroken) {
		t.Errorf("%t, %v", got, err)
	}
}

func TestClustersOfRelease(t *testing.T) {
	c := newReader(t,
		newCluster("b", "one", "a", "docker-ferrol-1-27-v0-sha.abc"),
		newCluster("a", "two", "", "docker-ferrol-1-27-v0-sha.abc"),
		newCluster("a", "one", "a", "docker-ferrol-1-27-v0-sha.abc"),
		newCluster("b", "same-name", "", "docker-ferrol-1-27-v0-sha.abc"),
		newCluster("a", "dashes", "", "docker-ferrol-1-27-v0-sha-abc"),
		newCluster("a", "three", "", "docker-ferrol-1-27-v1"),
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "none"}},
	)
	for name, tc := range map[string]struct{ namespace, release, want string }{
		"clusters of all namespaces, in their order": {"a", "docker-ferrol-1-27-v0-sha-abc", "a/one, a/two, b/one"},
		"the release of another namespace":           {"b", "docker-ferrol-1-27-v0-sha-abc", "b/same-name"},
		"a stable release":                           {"a", "docker-ferrol-1-27-v1", "a/three"},
		"a release that nobody uses":                 {"a", "docker-ferrol-1-27-v2", ""},
		"what is no release has no clusters":         {"a", "quick-start", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lineage.ClustersOfRelease(t.Context(), c, client.ObjectKey{Namespace: tc.namespace, Name: tc.release})
			if err != nil || lineage.ClusterNames(got) != tc.want {
				t.Errorf("%s, %v; want %s", lineage.ClusterNames(got), err, tc.want)
			}
		})
	}
	if _, err := lineage.ClustersOfRelease(t.Context(), failingReader(t), client.ObjectKey{Namespace: "a", Name: "docker-ferrol-1-27-v1"}); !errors.Is(err,
		errBroken) {
		t.Errorf("error %v: it must not look as if nobody used the release", err)
	}
	// A cluster of which only a part could be read may be of any class.
	part := newCluster("c", "part", "", "")
	part.Annotations, part.ResourceVersion = map[string]string{v1alpha1.UnreadableAnnotation: "true"}, v1alpha1.UnreadableVersion
	claimed := newCluster("c", "claimed", "", "")
	claimed.Annotations = part.Annotations
	got, err := lineage.ClustersOfRelease(t.Context(), newReader(t, part, claimed), client.ObjectKey{Namespace: "a", Name: "docker-ferrol-1-27-v1"})
	if err != nil || lineage.ClusterNames(got) != "c/part" {
		t.Errorf("%s, %v", lineage.ClusterNames(got), err)
	}
}

func TestClusterNames(t *testing.T) {
	some := func(n int) (out []clusterv1.Cluster) {
		for i := range n {
			out = append(out, *newCluster("a", fmt.Sprint("c", i), "", ""))
		}
		return out
	}
	ten := "a/c0, a/c1, a/c2, a/c3, a/c4, a/c5, a/c6, a/c7, a/c8, a/c9"
	for n, want := range map[int]string{0: "", 1: "a/c0", 2: "a/c0, a/c1", 10: ten, 11: ten + ", and 1 more", 200: ten + ", and 190 more"} {
		if got := lineage.ClusterNames(some(n)); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestStackOfRelease(t *testing.T) {
	first, second := newStack("first", nil), newStack("second", nil)
	custom := newStack("custom", func(s *csv1.ClusterStack) { s.Spec.Channel = csv1.ChannelCustom })
	elsewhere := newStack("elsewhere", func(s *csv1.ClusterStack) { s.Namespace = "b" })
	gone := newStack("gone", nil)
	for name, c := range map[string]struct {
		have    []client.Object
		release *csv1.ClusterStackRelease
		want    string
	}{
		"its owner, though another is for its line": {[]client.Object{first, second}, newRelease("docker-ferrol-1-27-v1", second), "second"},
		"its owner, though it is for another line":  {[]client.Object{first, custom}, newRelease("docker-ferrol-1-27-v1", custom), "custom"},
		"without an owner, the first for its line":  {[]client.Object{custom, second, first}, newRelease("docker-ferrol-1-27-v1", nil), "first"},
		"without an owner, the one of its channel":  {[]client.Object{first, custom}, newRelease("docker-ferrol-1-27-v0-sha-abc", nil), "custom"},
		"its owner is gone, so nobody else's":       {[]client.Object{first}, newRelease("docker-ferrol-1-27-v1", gone), ""},
		"only one of another namespace":             {[]client.Object{elsewhere}, newRelease("docker-ferrol-1-27-v1", nil), ""},
		"only one of another line":                  {[]client.Object{first}, newRelease("docker-ferrol-1-28-v1", nil), ""},
		"there is none":                             {nil, newRelease("docker-ferrol-1-27-v1", nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lineage.StackOfRelease(t.Context(), newReader(t, c.have...), c.release)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (c.want == "") || (got != nil && got.Name != c.want) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
	if _, err := lineage.StackOfRelease(t.Context(), failingReader(t), newRelease("docker-ferrol-1-27-v1", nil)); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

func TestIsReleaseOfStack(t *testing.T) {
	custom := func(s *csv1.ClusterStack) { s.Spec.Channel = csv1.ChannelCustom }
	versions := func(v ...string) func(*csv1.ClusterStack) {
		return func(s *csv1.ClusterStack) { s.Spec.Versions = v }
	}
	for name, c := range map[string]struct {
		stack   func(*csv1.ClusterStack)
		release string
		want    bool
	}{
		"a release of its line":                     {nil, "docker-ferrol-1-27-v1", true},
		"another minor":                             {nil, "docker-ferrol-1-28-v1", false},
		"another name":                              {nil, "docker-sines-1-27-v1", false},
		"another provider":                          {nil, "local-ferrol-1-27-v1", false},
		"what is no release":                        {nil, "ferrol", false},
		"a word in channel stable":                  {nil, "docker-ferrol-1-27-v0-sha-abc", false},
		"a word in channel custom":                  {custom, "docker-ferrol-1-27-v0-sha-abc", true},
		"any word in channel custom":                {custom, "docker-ferrol-1-27-v3-beta-10", true},
		"a stable version in channel custom":        {custom, "docker-ferrol-1-27-v1", false},
		"of another channel, but named":             {versions("v1", "v0-sha.abc"), "docker-ferrol-1-27-v0-sha-abc", true},
		"of another channel, named with a dash":     {versions("v0-sha-abc"), "docker-ferrol-1-27-v0-sha-abc", true},
		"of another channel, and another is named":  {versions("v0-sha.abd"), "docker-ferrol-1-27-v0-sha-abc", false},
		"named, but of another line":                {versions("v1"), "docker-ferrol-1-28-v1", false},
		"a version that cannot be read beside it":   {versions("1.0", "v0-sha.abc"), "docker-ferrol-1-27-v0-sha-abc", true},
		"the spelling of a class, which is another": {custom, "docker-ferrol-1-27-v0-sha.abc", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lineage.IsReleaseOfStack(newStack("s", c.stack), c.release); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestIsInChannel(t *testing.T) {
	for text, stable := range map[string]bool{"v1": true, "v0": true, "v12": true, "v0-sha.abc": false, "v1-stable.1": false, "v1-custom.1": false,
		"v3-beta.10": false} {
		v, err := version.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := []bool{lineage.IsInChannel(csv1.ChannelStable, v), lineage.IsInChannel("", v), lineage.IsInChannel(csv1.ChannelCustom, v)}
		if d := cmp.Diff([]bool{stable, stable, !stable}, got); d != "" {
			t.Error(text, d)
		}
	}
}

func TestServesNamespace(t *testing.T) {
	of := func(selector *metav1.LabelSelector) *csv1.ClusterStack {
		return newStack("s", func(s *csv1.ClusterStack) { s.Spec.AllowedNamespaces = selector })
	}
	label := func(v string) *csv1.ClusterStack {
		return of(&metav1.LabelSelector{MatchLabels: map[string]string{"kaas": v}})
	}
	invalid := of(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kaas", Operator: "Perhaps"}}})
	namespaces := newReader(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"kaas": "yes"}}}, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
	})
	for name, c := range map[string]struct {
		stack     *csv1.ClusterStack
		namespace string
		want      bool
		err       string
	}{
		"its own namespace, with nobody allowed":        {of(nil), "a", true, ""},
		"its own namespace, without a stack":            {nil, "a", true, ""},
		"its own namespace, which does not match":       {label("no"), "a", true, ""},
		"another namespace, with nobody allowed":        {of(nil), "b", false, ""},
		"another namespace, without a stack":            {nil, "b", false, ""},
		"a namespace that matches":                      {label("yes"), "b", true, ""},
		"a namespace that does not match":               {label("no"), "b", false, ""},
		"a namespace without labels":                    {label("yes"), "c", false, ""},
		"everybody":                                     {of(&metav1.LabelSelector{}), "c", true, ""},
		"everybody, also who is not known yet":          {of(&metav1.LabelSelector{}), "e", true, ""},
		"a selector that is none":                       {invalid, "b", false, "spec.allowedNamespaces of ClusterStack a/s: "},
		"a selector that is none, in its own namespace": {invalid, "a", true, ""},
		"a namespace that is not there":                 {label("yes"), "d", false, `namespaces "d" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lineage.ServesNamespace(t.Context(), namespaces, c.stack, newRelease("docker-ferrol-1-27-v1", nil), c.namespace)
			if got != c.want || (err == nil) != (c.err == "") || (err != nil && !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("%t, %v; want %t, %s", got, err, c.want, c.err)
			}
			if c.namespace == "d" && !apierrors.IsNotFound(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}
