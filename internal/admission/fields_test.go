package admission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

type change = func(*v1alpha1.WorkloadCluster)

// checkNew returns the errors of a new cluster, sorted.
func checkNew(t *testing.T, w *world, changes ...change) []string {
	t.Helper()
	return checkChange(t, w, nil, cluster(changes...))
}

// checkChange returns the errors of a change from old to o, sorted.
func checkChange(t *testing.T, w *world, old, o *v1alpha1.WorkloadCluster) []string {
	t.Helper()
	errs, err := w.checker(t).Check(t.Context(), o, old, false)
	if err != nil {
		t.Fatal(err)
	}
	out := errorTexts(errs)
	for i, text := range out {
		if strings.Contains(text, "regex used for validation") { // what follows is Kubernetes' own text
			out[i] = text[:strings.LastIndex(text[:strings.Index(text, "must")], `": `)+1]
		}
	}
	slices.Sort(out)
	return out
}

func pods(ranges ...string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Network.PodCIDRs = ranges }
}

func services(ranges ...string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Network.ServiceCIDRs = ranges }
}

func TestNetwork(t *testing.T) {
	const at = "spec.network."
	for name, c := range map[string]struct {
		changes []change
		want    []string
	}{
		"the default":        {nil, nil},
		"one of each family": {[]change{pods("10.0.0.0/16", "fd00::/56"), services("10.96.0.0/16", "fd01::/112")}, nil},
		"no range": {[]change{pods("10.0.0.0")}, []string{
			at + `podCIDRs[0]: Invalid value: "10.0.0.0": write a range of addresses such as 10.244.0.0/16`,
		}},
		"bits beside the range": {[]change{pods("10.0.1.0/16")}, []string{
			at + `podCIDRs[0]: Invalid value: "10.0.1.0/16": it has bits beside the range; write 10.0.0.0/16`,
		}},
		"two of one family": {[]change{pods("10.0.0.0/16", "10.1.0.0/16")}, []string{
			at + `podCIDRs[1]: Invalid value: "10.1.0.0/16": two ranges must be one of IPv4 and one of IPv6`,
		}},
		"services within pods": {[]change{pods("10.0.0.0/8")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "10.96.0.0/16": it overlaps with podCIDRs 10.0.0.0/8`,
		}},
		"the second overlaps": {[]change{pods("10.0.0.0/16", "fd00::/56"), services("10.96.0.0/16", "fd00::/112")}, []string{
			at + `serviceCIDRs[1]: Invalid value: "fd00::/112": it overlaps with podCIDRs fd00::/56`,
		}},
		"one that is none overlaps not": {[]change{pods("x"), services("0.0.0.0/0")}, []string{
			at + `podCIDRs[0]: Invalid value: "x": write a range of addresses such as 10.244.0.0/16`,
			at + `serviceCIDRs[0]: Invalid value: "0.0.0.0/0": addresses of 0.0.0.0/8 are not for hosts; choose a private range such as 10.96.0.0/16`,
		}},
		"services too large": {[]change{services("100.0.0.0/8")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "100.0.0.0/8": the number behind the slash is from 12, the largest range, to 28`,
		}},
		"services too small": {[]change{services("10.96.0.0/30")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "10.96.0.0/30": the number behind the slash is from 12, the largest range, to 28`,
		}},
		"one service": {[]change{services("10.96.0.1/32")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "10.96.0.1/32": the number behind the slash is from 12, the largest range, to 28`,
		}},
		"as large and as small as may be": {[]change{pods("11.0.0.0/8"), services("10.96.0.0/28")}, nil},
		"services of IPv6 too large": {[]change{pods("fd01::/56"), services("fd00::/64")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "fd00::/64": the number behind the slash is from 108, the largest range, to 124`,
		}},
		"pods too small": {[]change{pods("10.0.0.0/30")}, []string{
			at + `podCIDRs[0]: Invalid value: "10.0.0.0/30": the number behind the slash is from 8, the largest range, to 24`,
		}},
		"pods too few for the machines": {[]change{pods("10.0.0.0/23")}, []string{
			at + `podCIDRs[0]: Invalid value: "10.0.0.0/23": it has room for 2 machines, each with a /24, and while machines are replaced the cluster has 4; ` +
				"ask for fewer, or make a cluster with a larger range",
		}},
		"just enough": {[]change{pods("10.0.0.0/22")}, nil},
		"services of another family": {[]change{pods("fd00::/56")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "10.96.0.0/16": it is of IPv4, and podCIDRs has no such range; write one there, or take a range of the pods' family`,
		}},
		"pods of both families, services of one": {[]change{pods("10.0.0.0/16", "fd00::/56")}, nil},
		"loopback": {[]change{pods("127.0.0.0/16")}, []string{
			at + `podCIDRs[0]: Invalid value: "127.0.0.0/16": addresses of 127.0.0.0/8 are each machine's own (loopback); choose a private range such as 10.96.0.0/16`,
		}},
		"link-local": {[]change{services("169.254.0.0/20")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "169.254.0.0/20": addresses of 169.254.0.0/16 are of each single network (link-local); choose a private range such as 10.96.0.0/16`,
		}},
		"multicast": {[]change{services("239.0.0.0/16")}, []string{
			at + `serviceCIDRs[0]: Invalid value: "239.0.0.0/16": addresses of 224.0.0.0/3 are for groups (multicast), or reserved; choose a private range such as 10.96.0.0/16`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, checkNew(t, newWorld(), c.changes...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestIssuer(t *testing.T) {
	// The class has no OIDC, which is an error too and does not matter here.
	for url, ok := range map[string]bool{
		"https://i.example/realm": true, "https://i": true, "http://i": false, "https://": false, "i.example": false,
		"https://i?x=y": false, "https://i#x": false, "https://user@i": false, "https://%zz": false,
	} {
		got := checkNew(t, newWorld(), func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{IssuerURL: url, ClientID: "c"} })
		wrong := slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "spec.oidc.issuerURL: ") })
		if wrong == ok {
			t.Errorf("%s: %v", url, got)
		}
	}
}

func TestOIDCTexts(t *testing.T) {
	for name, c := range map[string]struct {
		oidc v1alpha1.OIDC
		want string // what the error begins with; empty if there is none
	}{
		"plain":                     {v1alpha1.OIDC{ClientID: "portal-1", UsernameClaim: "email", UsernamePrefix: "oidc:"}, ""},
		"a URL as client":           {v1alpha1.OIDC{ClientID: "https://app.example/x?y=z"}, ""},
		"no prefix":                 {v1alpha1.OIDC{ClientID: "c", UsernamePrefix: "-"}, ""},
		"a flag":                    {v1alpha1.OIDC{ClientID: "--anonymous-auth=true"}, "spec.oidc.clientID: Invalid value: \"--anonymous-auth=true\": it begins with -"},
		"a flag behind a blank":     {v1alpha1.OIDC{ClientID: "c --x"}, "spec.oidc.clientID: Invalid value: \"c --x\": it has blanks"},
		"a new line":                {v1alpha1.OIDC{ClientID: "c", GroupsClaim: "a\nb"}, "spec.oidc.groupsClaim: Invalid value: \"a\\nb\": it has blanks"},
		"groups of Kubernetes":      {v1alpha1.OIDC{ClientID: "c", GroupsPrefix: "system:"}, "spec.oidc.groupsPrefix: Invalid value: \"system:\": names that begin with system:"},
		"users of Kubernetes":       {v1alpha1.OIDC{ClientID: "c", UsernamePrefix: "system:x"}, "spec.oidc.usernamePrefix: Invalid value: \"system:x\": names that"},
		"a claim that begins so is": {v1alpha1.OIDC{ClientID: "c", GroupsClaim: "system:groups"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.oidc.IssuerURL = "https://i.example"
			// The class has no OIDC, which is an error too and does not matter here.
			got := slices.DeleteFunc(checkNew(t, newWorld(), func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &c.oidc }),
				func(s string) bool { return !strings.HasPrefix(s, "spec.oidc.") })
			if (c.want == "") != (len(got) == 0) || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("%q", got)
			}
		})
	}
}

func pool(p v1alpha1.WorkerPool) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers = append(o.Spec.Workers, p) }
}

func taint(key, value string) change {
	return pool(v1alpha1.WorkerPool{Name: "p", Taints: []v1alpha1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}}})
}

func label(key string) change {
	return pool(v1alpha1.WorkerPool{Name: "p", Labels: map[string]string{key: "x"}})
}

func TestWorkers(t *testing.T) {
	const at = "spec.workers[1]."
	long := newWorld()
	long.objects["Provider/local"].(*v1alpha1.Provider).Status.Zones = []string{strings.Repeat("z", 30), "b-c", "c"}
	for name, c := range map[string]struct {
		world   *world
		changes []change
		want    []string
	}{
		"a label of one's own domain": {nil, []change{label("example.org/team")}, nil},
		"a label that is ours": {nil, []change{label(v1alpha1.PoolLabel)}, []string{
			at + "labels[polder.dev/pool]: Forbidden: it is put on all nodes, with the name of their pool",
		}},
		"a label of Polder": {nil, []change{label("polder.dev/x")}, []string{
			at + "labels[polder.dev/x]: Forbidden: labels of this domain say what a node is for Polder or Kubernetes itself; use one without a domain, or of a domain of your own",
		}},
		"a role": {nil, []change{label("node-role.kubernetes.io/control-plane")}, []string{
			at + "labels[node-role.kubernetes.io/control-plane]: Forbidden: labels of this domain say what a node is for Polder or Kubernetes itself; " +
				"use one without a domain, or of a domain of your own",
		}},
		"more machines than Kubernetes takes": {nil, []change{
			pool(v1alpha1.WorkerPool{Name: "p", Replicas: ptr.To(int32(3000))}), pool(v1alpha1.WorkerPool{Name: "q", Replicas: ptr.To(int32(3000))}),
			pods("11.0.0.0/8"),
		}, []string{"spec.workers: Invalid value: all pools and the control plane together have 6002 machines; a cluster has at most 5000"}},
		"a label that never gets there": {nil, []change{label("kubernetes.io/x")}, []string{
			at + "labels[kubernetes.io/x]: Forbidden: labels of this domain are not put on nodes; use one without a domain, or of a domain of your own",
		}},
		"a label that is none is said once": {nil, []change{label("-")}, []string{
			at + `labels: Invalid value: "-"`,
		}},
		"a taint": {nil, []change{taint("example.org/gpu", "yes")}, nil},
		"a taint of Kubernetes": {nil, []change{taint("node.kubernetes.io/x", "")}, []string{
			at + "taints[0].key: Forbidden: taints of this domain are Kubernetes' own",
		}},
		"a taint of Cluster API": {nil, []change{taint("node.cluster.x-k8s.io/x", "")}, []string{
			at + "taints[0].key: Forbidden: taints of this domain are Kubernetes' own",
		}},
		"a taint of the cloud": {nil, []change{taint("node.cloudprovider.kubernetes.io/x", "")}, []string{
			at + "taints[0].key: Forbidden: taints of this domain are Kubernetes' own",
		}},
		"a domain that only ends so": {nil, []change{taint("my-node.kubernetes.io/x", "")}, nil},
		"a key that is none":         {nil, []change{taint("a/b/c", "")}, []string{at + `taints[0].key: Invalid value: "a/b/c"`}},
		"a value that is none":       {nil, []change{taint("a", "b c")}, []string{at + `taints[0].value: Invalid value: "b c"`}},
		"zones of the provider":      {nil, []change{pool(v1alpha1.WorkerPool{Name: "p", Zones: []string{"north", "south"}})}, nil},
		"a zone that was perhaps meant": {nil, []change{pool(v1alpha1.WorkerPool{Name: "p", Zones: []string{"north", "sout"}})}, []string{
			at + `zones[1]: Invalid value: "sout": provider local has the zones north, south; did you mean south?`,
		}},
		"two pools that are called alike in their zones": {long, []change{
			pool(v1alpha1.WorkerPool{Name: "a", Zones: []string{"b-c"}}), pool(v1alpha1.WorkerPool{Name: "a-b", Zones: []string{"c"}}),
		}, []string{`spec.workers[2].name: Invalid value: "a-b": with its zone it is called a-b-c, as a part of pool a is; give it another name`}},
		"a name too long with its zone": {long, []change{pool(v1alpha1.WorkerPool{Name: strings.Repeat("p", 33), Zones: []string{strings.Repeat("z", 30)}})},
			[]string{
				at + `name: Invalid value: "` + strings.Repeat("p", 33) + `": with its zone it is called ` + strings.Repeat("p", 33) + "-" + strings.Repeat("z", 30) +
					", which is longer than 63 characters",
			}},
		"as long as may be": {long, []change{pool(v1alpha1.WorkerPool{Name: strings.Repeat("p", 32), Zones: []string{strings.Repeat("z", 30)}})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world
			if w == nil {
				w = newWorld()
			}
			if d := cmp.Diff(c.want, checkNew(t, w, c.changes...)); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("a provider without zones", func(t *testing.T) {
		w := newWorld()
		w.objects["Provider/local"].(*v1alpha1.Provider).Status.Zones = nil
		got := checkNew(t, w, pool(v1alpha1.WorkerPool{Name: "p", Zones: []string{"north"}}))
		if d := cmp.Diff([]string{at + "zones[0]: Forbidden: provider local does not let zones be chosen"}, got); d != "" {
			t.Error(d)
		}
	})
}

func TestName(t *testing.T) {
	for name, c := range map[string]struct {
		name string
		ok   bool
	}{
		"a name":                       {"demo-1", true},
		"generated later":              {"", true},
		"it begins with a digit":       {"1-demo", false},
		"it has dots":                  {"demo.example", false},
		"longer than a label":          {strings.Repeat("a", 64), false},
		"as long as a label, and fine": {strings.Repeat("a", 63), true},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkNew(t, newWorld(), func(o *v1alpha1.WorkloadCluster) { o.Name = c.name })
			if (len(got) == 0) != c.ok || !c.ok && !strings.HasPrefix(got[0], "metadata.name: ") {
				t.Error(got)
			}
		})
	}
}

func TestShapes(t *testing.T) {
	shape := func(memory string) *v1alpha1.MachineShape {
		return &v1alpha1.MachineShape{CPU: 2, Memory: resource.MustParse(memory)}
	}
	with := func(controlPlane, worker string) change {
		return func(o *v1alpha1.WorkloadCluster) {
			o.Spec.ControlPlane.MachineSelection = v1alpha1.MachineSelection{Machine: shape(controlPlane)}
			o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", MachineSelection: v1alpha1.MachineSelection{Machine: shape(worker)}}}
		}
	}
	const small = `Kubernetes does not start with less than `
	if d := cmp.Diff([]string{
		`spec.controlPlane.machine.memory: Invalid value: "1Mi": ` + small + "1700Mi here; write at least that",
		`spec.workers[0].machine.memory: Invalid value: "256Mi": ` + small + "512Mi here; write at least that",
	}, checkNew(t, newWorld(), with("1Mi", "256Mi"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string(nil), checkNew(t, newWorld(), with("2Gi", "512Mi"))); d != "" {
		t.Error(d)
	}
	// What a cluster has already stops no other change.
	if d := cmp.Diff([]string(nil), checkChange(t, newWorld(), cluster(with("1Mi", "256Mi")), cluster(with("1Mi", "256Mi")))); d != "" {
		t.Error(d)
	}
}
