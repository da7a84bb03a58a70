package stack_test

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

const csctl = `apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1
config:
  kubernetesVersion: v1.34.7
  clusterStackName: scs2
  provider:
    type: openstack
    config: {method: get}
`

func TestParseSource(t *testing.T) {
	for name, c := range map[string]struct{ file, text, line, kubernetes string }{
		"of today":              {"csctl.yaml", csctl, "openstack-scs2-1-34", "v1.34.7"},
		"older":                 {"csmctl.yaml", strings.ReplaceAll(csctl, "csctl.", "csmctl."), "openstack-scs2-1-34", "v1.34.7"},
		"next":                  {"stack.yaml", "provider: local\nclusterStackName: scs\nkubernetesVersion: \"1.36\"\naddons: {ccm: 2.x}\n", "local-scs-1-36", "1.36"},
		"without quotes":        {"stack.yaml", "provider: local\nclusterStackName: scs\nkubernetesVersion: 1.30\n", "local-scs-1-30", "1.30"},
		"a list without quotes": {"stack.yaml", "provider: local\nclusterStackName: scs\nkubernetesVersions: [1.9, 1.30]\n", "local-scs-1-30", "1.30"},
		"an alias":              {"stack.yaml", "x: &v 1.30\nprovider: local\nclusterStackName: scs\nkubernetesVersion: *v\n", "local-scs-1-30", "1.30"},
		"csctl's minor":         {"csctl.yaml", strings.Replace(csctl, "v1.34.7", "1.30", 1), "openstack-scs2-1-30", "1.30"},
		"next, and exactly":     {"stack.yaml", "provider: local\nclusterStackName: my-stack\nkubernetesVersion: 1.36.3\n", "local-my-stack-1-36", "v1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := stack.ParseSource(archive.Tree{c.file: []byte(c.text)})
			if err != nil || s.String() != c.line || s.Kubernetes.String() != c.kubernetes || s.ConfigFile != c.file {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"nothing": {"README", "", "there is no stack.yaml, so this is no stack; polder stack init makes one"},
		"a version that is a list": {"stack.yaml", "provider: local\nclusterStackName: scs\nkubernetesVersion: [1.36]\n",
			"stack.yaml:3: kubernetesVersion must be a string, not array"},
		"a version that is none": {"stack.yaml", "provider: local\nclusterStackName: scs\nkubernetesVersion: 1\n",
			`stack.yaml:3: version "1" of Kubernetes is not of the form`},
		"no version":     {"csctl.yaml", "config:\n  clusterStackName: a\n  provider: {type: b}\n", "csctl.yaml:1: kubernetesVersion is missing"},
		"all wrong":      {"stack.yaml", "provider: a-b\nclusterStackName: A\nkubernetesVersion: x\n", "stack.yaml:1: provider \"a-b\" must be"},
		"all wrong, too": {"stack.yaml", "provider: a-b\nclusterStackName: A\nkubernetesVersion: x\n", "stack.yaml:2: stack name \"A\" must be"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := stack.ParseSource(archive.Tree{c.file: []byte(c.text)}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A source without a patch is built for the one that is chosen.
func TestChoosePatch(t *testing.T) {
	s, err := stack.ParseSource(archive.Tree{"stack.yaml": []byte("provider: local\nclusterStackName: scs\nkubernetesVersion: 1.35\n")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(stack.ModeStable, stack.History{}); err == nil ||
		!strings.Contains(err.Error(), "stack.yaml says Kubernetes 1.35, and a release is for an exact version; write it there, or choose it with --kubernetes") {
		t.Error(err)
	}
	k, err := version.ParseKubernetes("v1.35.3")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.ForKubernetes(k); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Plan(stack.ModeStable, stack.History{}); err != nil || v.Kubernetes != "v1.35.3" {
		t.Error(v, err)
	}
}

// Files of one tool in the place of another do not change what a directory is.
func TestIsRelease(t *testing.T) {
	for names, want := range map[string]bool{
		"csctl.yaml metadata.yaml cluster-class/Chart.yaml":           false, // left there by hand
		"stack.yaml cluster-class/Chart.yaml":                         false,
		"metadata.yaml a-b-1-36-cluster-class-v1.tgz":                 true,
		"metadata.yaml a-b-1-36-cluster-class-v1.tgz csctl.yaml":      true, // upstream's next build puts it there
		"metadata.yaml a-b-1-36-cluster-class-v1.tgz cluster-class/x": true,
		"metadata.yaml": true, // which is then told what it lacks
		"csctl.yaml metadata.yaml cluster-class/charts/x-1.tgz stack.lock": false,
	} {
		files := archive.Tree{}
		for _, name := range strings.Fields(names) {
			files[name] = []byte("x")
		}
		if got := stack.IsRelease(files); got != want {
			t.Errorf("%s: %t", names, got)
		}
	}
}

func TestHashes(t *testing.T) {
	files := func(change ...string) archive.Tree {
		f := archive.Tree{
			"csctl.yaml": []byte(csctl), "cluster-class/Chart.yaml": []byte("a"), "cluster-addon/Chart.yaml": []byte("b"),
			"cluster-addon-values.yaml": []byte("c"), "node-images/config.yaml": []byte("d"), "README.md": []byte("e"),
		}
		for _, name := range change {
			f[name] = []byte("changed")
		}
		return f
	}
	h := stack.HashSource(files())
	if h.ClusterAddonValues != "ln0sa6lqeujl7pw1nwifptotogkdjboumxjloaja78y" || len(h.ShortHash()) != 7 {
		t.Errorf("%+v", h) // computed apart: sha256 of "c" in base64, without signs and capitals
	}
	if got := stack.HashSource(archive.Tree{"x": []byte("1"), "y/z": []byte("2")}).ClusterStack; got != "50jkuss2caa8detb9ntmznze83puiosvnnnr3lmg88" {
		t.Error("a directory's hash is not what other tools compute:", got)
	}
	for file, want := range map[string]struct{ same, addons bool }{
		"README.md":                 {true, true}, // it is in no release
		"cluster-class/Chart.yaml":  {false, true},
		"cluster-class/values.yaml": {false, true},
		"cluster-addon/Chart.yaml":  {false, false},
		"cluster-addon-values.yaml": {false, false},
		"node-images/config.yaml":   {false, true},
	} {
		c := stack.HashSource(files(file))
		if h.SameContent(c) != want.same || h.SameAddons(c) != want.addons || h.ClusterStack == c.ClusterStack {
			t.Errorf("%s: same %t, add-ons %t", file, h.SameContent(c), h.SameAddons(c))
		}
	}
	old := h
	old.ClusterClassDir = "" // of a release of older tools
	if !h.SameContent(old) || stack.HashSource(files("cluster-class/Chart.yaml")).SameContent(old) {
		t.Error("a change of the class alone is a change")
	}
}
