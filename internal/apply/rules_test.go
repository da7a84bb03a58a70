package apply

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	const token = "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: other}, type: bootstrap.kubernetes.io/token}"
	const mirror = `{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: kube-system, annotations: {kubernetes.io/config.mirror: "1"}}}`
	for _, tc := range []struct {
		name   string
		rule   Rule
		object string
		want   string // part of the objection; none if empty
	}{
		{"a class", OnlyKinds(DefaultKinds()), within("home", "cluster.x-k8s.io/v1beta2", "ClusterClass", "x"), ""},
		{"a template", OnlyKinds(DefaultKinds()), within("home", "infrastructure.cluster.x-k8s.io/v1", "FooMachineTemplate", "x"), ""},
		{"an image", OnlyKinds(DefaultKinds()), within("home", "openstack.k-orc.cloud/v1alpha1", "Image", "x"), ""},
		{"a secret", OnlyKinds(DefaultKinds()), within("home", "v1", "Secret", "x"),
			"Secret home/x is not allowed: a release may only bring cluster.x-k8s.io/ClusterClass, bootstrap"},
		{"a kind that only begins well", OnlyKinds(DefaultKinds()), within("home", "infrastructure.cluster.x-k8s.io/v1", "FooTemplates", "x"),
			"allow it with --stack-kinds"},
		{"a good kind of another group", OnlyKinds(DefaultKinds()), within("home", "example.com/v1", "ClusterClass", "x"), "not allowed"},
		{"a cluster itself", OnlyKinds(DefaultKinds()), within("home", "cluster.x-k8s.io/v1beta2", "Cluster", "x"), "not allowed"},
		{"webhooks", OnlyKinds(DefaultKinds()), named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "x"), "not allowed"},

		{"its own namespace", OnlyNamespace("home"), within("home", "v1", "ConfigMap", "x"), ""},
		{"another namespace", OnlyNamespace("home"), within("away", "v1", "ConfigMap", "x"), "ConfigMap away/x is not allowed: only objects of namespace home"},
		{"no namespace", OnlyNamespace("home"), named("rbac.authorization.k8s.io/v1", "ClusterRole", "x"),
			"ClusterRole x is not allowed: it is for the whole cluster"},

		{"an owner", NoOwnerReferences(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, ownerReferences: [{kind: Node, name: n, uid: u}]}}",
			"metadata.ownerReferences"},
		{"an owner in disguise", NoOwnerReferences(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, ownerReferences: {}}}", "metadata.ownerReferences"},
		{"a finalizer", NoOwnerReferences(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [a/b]}}", "metadata.finalizers"},
		{"managed fields", NoOwnerReferences(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, managedFields: [{}]}}", "metadata.managedFields"},
		{"empty lists", NoOwnerReferences(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [], ownerReferences: null}}", ""},

		{"a node", NoKubeadmObjects(), named("v1", "Node", "x"), "Node x is not allowed: it belongs to kubeadm"},
		{"a custom kind that is called node", NoKubeadmObjects(), named("example.com/v1", "Node", "x"), ""},
		{"kubeadm's configuration", NoKubeadmObjects(), within("kube-system", "v1", "ConfigMap", "kubeadm-config"), "not allowed"},
		{"the kubelets' configuration", NoKubeadmObjects(), within("kube-system", "v1", "ConfigMap", "kubelet-config-1.30"), "not allowed"},
		{"the cluster's description", NoKubeadmObjects(), within("kube-public", "v1", "ConfigMap", "cluster-info"), "not allowed"},
		{"the same name elsewhere", NoKubeadmObjects(), within("default", "v1", "ConfigMap", "kubeadm-config"), ""},
		{"a token by name", NoKubeadmObjects(), within("kube-system", "v1", "Secret", "bootstrap-token-abcdef"), "not allowed"},
		{"a token by type", NoKubeadmObjects(), token, "not allowed"},
		{"another secret", NoKubeadmObjects(), within("kube-system", "v1", "Secret", "x"), ""},
		{"kubeadm's role", NoKubeadmObjects(), named("rbac.authorization.k8s.io/v1", "ClusterRole", "kubeadm:get-nodes"), "not allowed"},
		{"kubeadm's binding", NoKubeadmObjects(), within("kube-system", "rbac.authorization.k8s.io/v1", "RoleBinding", "kubeadm:x"), "not allowed"},
		{"another role", NoKubeadmObjects(), named("rbac.authorization.k8s.io/v1", "ClusterRole", "cilium"), ""},
		{"a mirror of a static pod", NoKubeadmObjects(), mirror, "not allowed"},
		{"a pod", NoKubeadmObjects(), within("kube-system", "v1", "Pod", "x"), ""},
		{"coredns, which somebody owns", NoKubeadmObjects(), within("kube-system", "apps/v1", "Deployment", "coredns"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := parse(t, tc.object)[0]
			err := tc.rule(RefOf(u), u)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("there is an objection: %v", err)
			case tc.want != "" && err == nil:
				t.Error("there is no objection")
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("the objection is %q, it should say %q", err, tc.want)
			}
		})
	}
}

func TestParseKindPattern(t *testing.T) {
	for in, ok := range map[string]bool{
		"cluster.x-k8s.io/ClusterClass":             true,
		"infrastructure.cluster.x-k8s.io/*Template": true,
		"*.example.com/Widget*":                     true,
		"*/*":                                       true,
		"ConfigMap":                                 true,
		"":                                          false,
		"/ConfigMap":                                false,
		"a/b/c":                                     false,
		"example.com/":                              false,
		"example.com/*Machine*":                     false,
		"example.com/Ma*ne":                         false,
		"Example.com/Widget":                        false,
		"example.com/Widget ":                       false,
	} {
		p, err := ParseKindPattern(in)
		if (err == nil) != ok {
			t.Errorf("%q: the error is %v", in, err)
		}
		if err == nil && p.String() != in {
			t.Errorf("%q is written as %q", in, p)
		}
	}
}

func TestKindPatternMatches(t *testing.T) {
	for _, tc := range []struct {
		pattern, group, kind string
		want                 bool
	}{
		{"ConfigMap", "", "ConfigMap", true},
		{"ConfigMap", "example.com", "ConfigMap", false},
		{"example.com/Widget", "", "Widget", false},
		{"example.com/*Template", "example.com", "WidgetTemplate", true},
		{"example.com/*Template", "example.com", "TemplateWidget", false},
		{"example.com/Widget*", "example.com", "WidgetTemplate", true},
		{"example.com/Widget*", "example.com", "MyWidget", false},
		{"*.example.com/Widget", "a.example.com", "Widget", true},
		{"*.example.com/Widget", "evil-example.com", "Widget", false},
		{"*/*", "", "Secret", true},
	} {
		p, err := ParseKindPattern(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.matches(Ref{Group: tc.group, Kind: tc.kind}); got != tc.want {
			t.Errorf("%s matches %s/%s: %v", tc.pattern, tc.group, tc.kind, got)
		}
	}
}
