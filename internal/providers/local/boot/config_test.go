package boot

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraptokenv1 "k8s.io/kubernetes/cmd/kubeadm/app/apis/bootstraptoken/v1" //nolint:depguard // as below
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"                 //nolint:depguard // what is tested here is kubeadm's configuration
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

var testCluster = hostapi.Cluster{Namespace: "ns", Name: "c", UID: "c", Addresses: netip.MustParsePrefix("127.1.0.0/20"), Port: 6443}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{
		clock:       clock.RealClock{},
		MachineSpec: hostapi.MachineSpec{Name: "m", Node: "node-1", UID: "u", Version: "v1.36.1", ProviderID: "local://ns/c/m"},
		dir:         hostapi.MachineDir(t.TempDir()), address: netip.MustParseAddr("127.1.0.11"), cluster: testCluster,
	}
}

// documents reads what prepareConfig returns.
func documents(t *testing.T, b []byte) (all []object) {
	t.Helper()
	for _, d := range strings.Split("\n"+string(b), "\n---\n") {
		o := object{}
		if err := yaml.Unmarshal([]byte(d), &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func TestPrepareConfig(t *testing.T) {
	for name, c := range map[string]struct {
		in         string
		want       []object
		notHonored int
		notes      int
	}{
		"init": {
			in: "kind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 127.0.0.1, bindPort: 7443}\n",
			want: []object{{"kind": "InitConfiguration", "localAPIEndpoint": object{"advertiseAddress": placeholderAddress, "bindPort": float64(7443)},
				"nodeRegistration": object{"name": "node-1"}}},
		},
		"a name that was given stays": {
			in: "kind: InitConfiguration\nnodeRegistration: {name: other}\n",
			want: []object{{"kind": "InitConfiguration", "localAPIEndpoint": object{"advertiseAddress": placeholderAddress},
				"nodeRegistration": object{"name": "other"}}},
		},
		"join of a worker": {
			in:   "kind: JoinConfiguration\nnodeRegistration: {name: ''}\n",
			want: []object{{"kind": "JoinConfiguration", "nodeRegistration": object{"name": "node-1"}}},
		},
		"join of a control plane": {
			in: "kind: JoinConfiguration\ncontrolPlane: {}\n",
			want: []object{{"kind": "JoinConfiguration", "controlPlane": object{"localAPIEndpoint": object{"advertiseAddress": placeholderAddress}},
				"nodeRegistration": object{"name": "node-1"}}},
		},
		"several, as Cluster API writes them": {
			in: "---\nkind: ClusterConfiguration\nclusterName: x\n---\nkind: InitConfiguration\n--- # the end\n\n---\n",
			want: []object{{"kind": "ClusterConfiguration", "clusterName": "x"}, {"kind": "InitConfiguration",
				"localAPIEndpoint": object{"advertiseAddress": placeholderAddress}, "nodeRegistration": object{"name": "node-1"}}},
		},
		"gates of another version": {
			in:    "kind: ClusterConfiguration\nfeatureGates: {RootlessControlPlane: true, Gone: true, AlsoGone: false}\n",
			want:  []object{{"kind": "ClusterConfiguration", "featureGates": object{}}},
			notes: 2, notHonored: 1, // kubeadm would add users to this computer
		},
		"for a kubelet and a proxy": {
			in:   "kind: KubeletConfiguration\nmaxPods: 5\n---\nkind: KubeProxyConfiguration\nmode: ipvs\n",
			want: []object{{"kind": "KubeletConfiguration", "maxPods": float64(5)}, {"kind": "KubeProxyConfiguration", "mode": "ipvs"}}, notHonored: 2,
		},
		"dashes in a value": {
			in:   "kind: ClusterConfiguration\ncaData: |\n  -----BEGIN CERTIFICATE-----\n  ---\n",
			want: []object{{"kind": "ClusterConfiguration", "caData": "-----BEGIN CERTIFICATE-----\n---\n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			got, err := m.prepareConfig([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, documents(t, got)); d != "" {
				t.Error(d)
			}
			if len(m.status.NotHonored) != c.notHonored || len(m.status.Notes) != c.notes {
				t.Errorf("not honored %q, notes %q", m.status.NotHonored, m.status.Notes)
			}
		})
	}
}

func TestPrepareConfigErrors(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"not YAML":             {"kind: {", "reading the kubeadm configuration"},
		"of another kind":      {"kind: Pod", `unknown kind "Pod"`},
		"of no kind":           {"a: b", "unknown kind"},
		"too many documents":   {strings.Repeat("kind: InitConfiguration\n---\n", maxDocuments), "has 17 documents; at most 16"},
		"a list":               {"[a]", "reading the kubeadm configuration"},
		"a kind that is a map": {"kind: {a: b}", "unknown kind"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newMachine(t).prepareConfig([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestDropUnknownFeatureGates(t *testing.T) {
	for name, o := range map[string]object{"none": {}, "nothing": {"featureGates": nil}, "nonsense": {"featureGates": "x"}} {
		m := newMachine(t)
		m.dropUnknownFeatureGates(o)
		if len(m.status.Notes) > 0 {
			t.Errorf("%s: %q", name, m.status.Notes)
		}
	}
	m := newMachine(t)
	for range 2 { // a second attempt says nothing new
		m.dropUnknownFeatureGates(object{"featureGates": object{"B": true, "A": true}})
	}
	if len(m.status.Notes) != 2 || !strings.Contains(m.status.Notes[0], "gate A is left out") {
		t.Errorf("%q", m.status.Notes)
	}
}

func TestWriteNodeRegistration(t *testing.T) {
	arg := func(name, value string) kubeadmapi.Arg { return kubeadmapi.Arg{Name: name, Value: value} }
	taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		in                kubeadmapi.NodeRegistrationOptions
		want              hostapi.NodeRegistration
		notHonored, notes string
		err               string
	}{
		"nothing": {},
		"labels and taints": {
			in: kubeadmapi.NodeRegistrationOptions{
				Taints: []corev1.Taint{taint}, KubeletExtraArgs: []kubeadmapi.Arg{arg("node-labels", "a=b,c="), arg("register-with-taints", "x=y:NoExecute")},
			},
			want: hostapi.NodeRegistration{
				Labels: map[string]string{"a": "b", "c": ""}, Taints: []corev1.Taint{taint, {Key: "x", Value: "y", Effect: corev1.TaintEffectNoExecute}},
			},
		},
		"empty ones": {in: kubeadmapi.NodeRegistrationOptions{KubeletExtraArgs: []kubeadmapi.Arg{arg("node-labels", ""), arg("register-with-taints", "")}}},
		"what a kubelet would need": {
			in: kubeadmapi.NodeRegistrationOptions{
				KubeletExtraArgs: []kubeadmapi.Arg{arg("cloud-provider", "external"), arg("provider-id", "x://"), arg("v", "5")},
			},
			notHonored: "kubelet argument cloud-provider=external: nodes are initialised at once; kubelet argument v=5: there is no kubelet",
			notes:      "kubelet argument provider-id is replaced by local://ns/c/m",
		},
		"another name": {in: kubeadmapi.NodeRegistrationOptions{Name: "other"},
			err: `nodeRegistration.name is "other"; a node here has its Machine's name, "node-1"`},
		"wrong labels": {in: kubeadmapi.NodeRegistrationOptions{KubeletExtraArgs: []kubeadmapi.Arg{arg("node-labels", "a")}},
			err: `node-labels: "a" is not KEY=VALUE`},
		"wrong taints": {in: kubeadmapi.NodeRegistrationOptions{KubeletExtraArgs: []kubeadmapi.Arg{arg("register-with-taints", "a")}},
			err: `register-with-taints: "a" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if c.in.Name == "" {
				c.in.Name = "node-1"
			}
			err := m.writeNodeRegistration(c.in)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			var got hostapi.NodeRegistration
			b, err := os.ReadFile(m.dir.NodeFile())
			if err != nil || json.Unmarshal(b, &got) != nil {
				t.Fatalf("%s, %v", b, err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if got := strings.Join(m.status.NotHonored, "; "); got != c.notHonored {
				t.Errorf("not honored %q, want %q", got, c.notHonored)
			}
			if got := strings.Join(m.status.Notes, "; "); got != c.notes {
				t.Errorf("notes %q, want %q", got, c.notes)
			}
		})
	}
}

func TestParseLabels(t *testing.T) {
	for in, want := range map[string]map[string]string{
		"":                      {},
		"a=b":                   {"a": "b"},
		"a=b,c=d=e":             {"a": "b", "c": "d=e"},
		"a=,a=b":                {"a": "b"},
		"a":                     nil,
		"=b":                    nil,
		"a=b,":                  nil,
		"example.com/a=b,x.y=z": {"example.com/a": "b", "x.y": "z"},
	} {
		got := map[string]string{}
		if err := parseLabels(in, got); (err == nil) != (want != nil) || err == nil && !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
}

func TestParseTaints(t *testing.T) {
	for in, want := range map[string][]corev1.Taint{
		"":                             {},
		"a=b:NoSchedule":               {{Key: "a", Value: "b", Effect: "NoSchedule"}},
		"a:NoExecute,b=:NoSchedule":    {{Key: "a", Effect: "NoExecute"}, {Key: "b", Effect: "NoSchedule"}},
		"a=b":                          nil,
		"a=b:NoSchedule,":              nil,
		"example.com/a=b:NoSchedule":   {{Key: "example.com/a", Value: "b", Effect: "NoSchedule"}},
		"a=b:NoSchedule,a=b:NoExecute": {{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "a", Value: "b", Effect: "NoExecute"}},
	} {
		if got, err := parseTaints(in); (err == nil) != (want != nil) || err == nil && len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
}

func TestRemoveSkippedPhases(t *testing.T) {
	all := []string{"files", "certs", "upload-config", "mark-control-plane", "addon/coredns", "addon/kube-proxy"}
	for name, c := range map[string]struct {
		skip       []string
		gone       []string
		notHonored int
	}{
		"nothing":                      {},
		"an add-on":                    {skip: []string{"addon/kube-proxy"}, gone: []string{"addon/kube-proxy"}},
		"all add-ons":                  {skip: []string{"addon"}, gone: []string{"addon/kube-proxy", "addon/coredns"}},
		"what is not done here anyway": {skip: []string{"preflight", "kubelet-start"}},
		"what makes the machine":       {skip: []string{"certs"}, notHonored: 1},
		"a part of what makes it":      {skip: []string{"certs/ca"}, notHonored: 1},
		"what is not known":            {skip: []string{"up"}, notHonored: 1},
		"several": {skip: []string{"upload-config", "mark-control-plane", "files"}, gone: []string{"upload-config", "mark-control-plane"},
			notHonored: 1},
		"what only begins like another": {skip: []string{"addon/core"}, notHonored: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var steps []step
			for _, n := range all {
				steps = append(steps, step{name: n})
			}
			left := map[string]bool{}
			for _, s := range m.removeSkippedPhases(c.skip, steps) {
				left[s.name] = true
			}
			for _, n := range c.gone {
				if left[n] {
					t.Errorf("%s is not skipped", n)
				}
			}
			if len(left)+len(c.gone) != len(all) || len(m.status.NotHonored) != c.notHonored {
				t.Errorf("left %v, not honored %q", left, m.status.NotHonored)
			}
		})
	}
}

// kubeadm's own token is good for a day, and nobody knows it; those of the class stay.
func TestWantedTokens(t *testing.T) {
	token := func(description string, ttl time.Duration) bootstraptokenv1.BootstrapToken {
		return bootstraptokenv1.BootstrapToken{Description: description, TTL: &metav1.Duration{Duration: ttl}}
	}
	var kubeadms bootstraptokenv1.BootstrapToken
	bootstraptokenv1.SetDefaults_BootstrapToken(&kubeadms)
	got := wantedTokens([]bootstraptokenv1.BootstrapToken{kubeadms, token("", time.Minute), token("of the class", 24*time.Hour)})
	if len(got) != 2 || got[0].TTL.Duration != time.Minute || got[1].Description != "of the class" {
		t.Errorf("%+v", got)
	}
}
