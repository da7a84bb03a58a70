package rewrite

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// kubeconfig is one of a machine of the cluster, with a user as written.
func kubeconfig(server, user string) string {
	ca := base64.StdEncoding.EncodeToString([]byte("ca"))
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: '" + server + "', certificate-authority-data: " + ca + "}}]\n" +
		"users: [{name: u, user: {" + user + "}}]\n"
}

// newRoot makes a machine's files: good and hostile ones, and links out of the machine.
func newRoot(t testing.TB) Machine {
	t.Helper()
	dir := t.TempDir()
	m := machine
	m.Root = filepath.Join(dir, "m")
	const server = "https://127.3.16.1:6443"
	const encryption = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [%]}]\n"
	const admission = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [%]\n"
	const authentication = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n%\n"
	const scheduler = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n%\n"
	for name, content := range map[string]string{
		"good.conf": kubeconfig(server, "token: x"), "exec.conf": kubeconfig(server, "exec: {command: /bin/sh}"),
		"provider.conf": kubeconfig(server, "auth-provider: {name: oidc}"), "tokenfile.conf": kubeconfig(server, "tokenFile: /etc/passwd"),
		"keyfile.conf": kubeconfig(server, "client-certificate: ../../x, client-key: ../../y"), "as.conf": kubeconfig(server, "as: root"),
		"elsewhere.conf": kubeconfig("https://127.0.0.1:6443", ""), "plain.conf": kubeconfig("http://127.3.16.1:6443", ""),
		"unix.conf":     kubeconfig("unix:///x", ""),
		"insecure.conf": strings.Replace(kubeconfig(server, ""), "server:", "insecure-skip-tls-verify: true, server:", 1),
		"proxy.conf":    strings.Replace(kubeconfig(server, ""), "server:", "proxy-url: 'http://x', server:", 1),
		"two.conf":      kubeconfig(server, "") + "---\n" + kubeconfig(server, "exec: {command: /bin/sh}"),
		"twice.conf":    kubeconfig(server, "token: x") + "users: [{name: u, user: {exec: {command: /bin/sh}}}]\n",
		"aes.yaml":      strings.Replace(encryption, "%", "{aescbc: {keys: [{name: a, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}}, {identity: {}}", 1),
		"kms.yaml":      strings.Replace(encryption, "%", "{kms: {name: a, endpoint: 'unix:///x'}}", 1),
		"pods.yaml":     strings.Replace(admission, "%", "{name: PodSecurity, path: pod.yaml}, {name: EventRateLimit, configuration: {}}", 1),
		"image.yaml":    strings.Replace(admission, "%", "{name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: exec.conf}}}", 1),
		"up.yaml":       strings.Replace(admission, "%", "{name: PodSecurity, path: ../../../x}", 1),
		"absolute.yaml": strings.Replace(admission, "%", "{name: PodSecurity, path: /etc/passwd}", 1),
		"anyone.yaml":   strings.Replace(authentication, "%", "anonymous: {enabled: true}\njwt: [{issuer: {url: 'https://i', audiences: [a]}}]", 1),
		"issuer.yaml":   strings.Replace(authentication, "%", "jwt: [{issuer: {url: 'http://i'}}]", 1),
		"egress.yaml":   strings.Replace(authentication, "%", "jwt: [{issuer: {url: 'https://i', egressSelectorType: cluster}}]", 1),
		"plan.yaml":     strings.Replace(scheduler, "%", "clientConnection: {kubeconfig: etc/kubernetes/good.conf}", 1),
		"planexec.yaml": strings.Replace(scheduler, "%", "clientConnection: {kubeconfig: etc/kubernetes/exec.conf}", 1),
		"planabs.yaml":  strings.Replace(scheduler, "%", "clientConnection: {kubeconfig: /etc/kubernetes/good.conf}", 1),
		"extender.yaml": strings.Replace(scheduler, "%", "extenders: [{urlPrefix: 'http://x'}]\nclientConnection: {kubeconfig: etc/kubernetes/good.conf}", 1),
		"webhook.yaml":  "apiVersion: v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Webhook, name: x, webhook: {}}]\n",
		"rbac.yaml":     "apiVersion: v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Node, name: n}, {type: RBAC, name: r}]\n",
	} {
		file := filepath.Join(m.Root, "etc/kubernetes", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(dir, "secret")
	for _, err := range []error{
		os.WriteFile(outside, []byte("x"), 0o600), os.MkdirAll(filepath.Join(m.Root, "var"), 0o700),
		os.Symlink(outside, filepath.Join(m.Root, "link")), os.Symlink("../..", filepath.Join(m.Root, "var/up")),
		os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(m.Root, "var/dangling")), os.Symlink("kubernetes", filepath.Join(m.Root, "etc/inside")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestRefusedArguments(t *testing.T) {
	m := newRoot(t)
	for name, c := range map[string]struct {
		args string // separated by spaces
		want string // empty: it is taken
	}{
		"a word":                       {"etcd gateway", "it is no flag"},
		"after two dashes":             {"etcd -- --name=x", "it is no flag"},
		"a flag that is unknown":       {"kube-apiserver --no-such-flag=x", "--no-such-flag of kube-apiserver is refused: it is not on the list"},
		"its value apart":              {"kube-apiserver --no-such-flag x", "not on the list"},
		"three dashes":                 {"etcd ---name=x", "it is no flag"},
		"one dash":                     {"kube-apiserver -etcd-servers=unix:///x", "it is no flag"},
		"letters together":             {"kube-apiserver -hv", "it is no flag"},
		"a value after a switch":       {"kube-apiserver --profiling false", "it is no flag"},
		"no value":                     {"kube-apiserver --etcd-servers", "it has no value"},
		"a letter and its value":       {"kube-apiserver -v 4", ""},
		"store on a socket":            {"kube-apiserver --etcd-servers=unix:///x/etcd.sock", "is not https://ADDRESS:2379"},
		"store on a socket, apart":     {"kube-apiserver --etcd-servers unix:///x/etcd.sock", "is not https://ADDRESS:2379"},
		"store with an underscore":     {"kube-apiserver --etcd_servers=unix:///x/etcd.sock", "is not https://ADDRESS:2379"},
		"second store":                 {"kube-apiserver --etcd-servers=https://127.0.0.1:2379,https://127.4.0.1:2379", "is not https://ADDRESS:2379"},
		"store twice":                  {"kube-apiserver --etcd-servers=https://127.0.0.1:2379 --etcd-servers=https://127.4.0.1:2379", "is not https://"},
		"store without TLS":            {"kube-apiserver --etcd-servers=http://127.0.0.1:2379", "is not https://ADDRESS:2379"},
		"store on another port":        {"kube-apiserver --etcd-servers=https://127.0.0.1:2999", "is not https://ADDRESS:2379"},
		"store with a user":            {"kube-apiserver --etcd-servers=https://127.0.0.1:2379@x", "is not https://ADDRESS:2379"},
		"stores of some kinds":         {"kube-apiserver --etcd-servers-overrides=/events#unix:///x", "a local machine has one store"},
		"encryption outside":           {"kube-apiserver --encryption-provider-config=../../../../../pki/encryption.yaml", "is not below /etc"},
		"encryption by a socket":       {"kube-apiserver --encryption-provider-config=/etc/kubernetes/kms.yaml", "providers[0].kms is refused: it would connect to a socket"},
		"encryption":                   {"kube-apiserver --encryption-provider-config=/etc/kubernetes/aes.yaml", ""},
		"admission":                    {"kube-apiserver --admission-control-config-file=/etc/kubernetes/pods.yaml", ""},
		"admission by a link inside":   {"kube-apiserver --admission-control-config-file=/etc/inside/pods.yaml", ""},
		"admission by a server":        {"kube-apiserver --admission-control-config-file=/etc/kubernetes/image.yaml", "ImagePolicyWebhook"},
		"admission upwards":            {"kube-apiserver --admission-control-config-file=/etc/kubernetes/up.yaml", "without a way upwards"},
		"admission of the computer":    {"kube-apiserver --admission-control-config-file=/etc/kubernetes/absolute.yaml", "name a file relative to"},
		"no such file":                 {"kube-apiserver --admission-control-config-file=/etc/kubernetes/none.yaml", "is not on the machine"},
		"another kind":                 {"kube-apiserver --admission-control-config-file=/etc/kubernetes/aes.yaml", "is no AdmissionConfiguration"},
		"authentication":               {"kube-apiserver --authentication-config=/etc/kubernetes/anyone.yaml", ""},
		"issuer without TLS":           {"kube-apiserver --authentication-config=/etc/kubernetes/issuer.yaml", "is no https URL"},
		"issuer by a proxy":            {"kube-apiserver --authentication-config=/etc/kubernetes/egress.yaml", "egressSelectorType"},
		"authorization":                {"kube-apiserver --authorization-config=/etc/kubernetes/rbac.yaml", ""},
		"authorization by a server":    {"kube-apiserver --authorization-config=/etc/kubernetes/webhook.yaml", "use Node or RBAC"},
		"authorization mode":           {"kube-apiserver --authorization-mode=Node,Webhook", "asks another server"},
		"token webhook":                {"kube-apiserver --authentication-token-webhook-config-file=/etc/kubernetes/good.conf", "send data"},
		"audit webhook":                {"kube-apiserver --audit-webhook-config-file=/etc/kubernetes/good.conf", "send data"},
		"audit log":                    {"kube-apiserver --audit-log-path=/var/log/audit.log", ""},
		"audit log to the output":      {"kube-apiserver --audit-log-path=-", ""},
		"audit log over a kubeconfig":  {"kube-apiserver --audit-log-path=/etc/kubernetes/good.conf", "nothing is written to"},
		"audit log as a manifest":      {"kube-apiserver --audit-log-path=/audit/../etc/kubernetes/manifests/x.yaml", "nothing is written to"},
		"audit log through a mount":    {"kube-apiserver --audit-log-path=/audit/x", "nothing is written to"},
		"audit log through a link":     {"kube-apiserver --audit-log-path=/var/up/x", "is not a file of the machine"},
		"audit log to a dangling link": {"kube-apiserver --audit-log-path=/var/dangling", "is not a file of the machine"},
		"file through a link":          {"kube-apiserver --client-ca-file=/link", "is not a file of the machine"},
		"egress":                       {"kube-apiserver --egress-selector-config-file=/etc/x", "socket"},
		"tracing":                      {"kube-apiserver --tracing-config-file=/etc/x", "elsewhere"},
		"debug socket":                 {"kube-apiserver --debug-socket-path=/var/x", "socket"},
		"signing elsewhere":            {"kube-apiserver --service-account-signing-endpoint=/var/x", "socket"},
		"logs of the computer":         {"kube-apiserver --enable-logs-handler", "log files of this computer"},
		"no logs":                      {"kube-apiserver --enable-logs-handler=false", ""},
		"shared port":                  {"kube-apiserver --permit-port-sharing=true", "another process could take the port"},
		"another address":              {"kube-apiserver --bind-address=127.3.16.12", "not the machine's own address"},
		"address of all":               {"kube-apiserver --bind-address=10.0.0.1", "no address of this cluster"},
		"a number that is none":        {"kube-apiserver --max-requests-inflight=x", "is no number"},
		"kubeconfig":                   {"kube-scheduler --kubeconfig=/etc/kubernetes/good.conf", ""},
		"relative kubeconfig":          {"kube-scheduler --kubeconfig=etc/kubernetes/good.conf", ""},
		"no kubeconfig":                {"kube-scheduler --kubeconfig=", "names no file"},
		"kubeconfig with a program":    {"kube-scheduler --kubeconfig=etc/kubernetes/exec.conf", "users[0].user.exec is refused: it would run a program"},
		"the same, apart":              {"kube-scheduler --kubeconfig etc/kubernetes/exec.conf", "run a program"},
		"kubeconfig with a provider":   {"kube-controller-manager --authentication-kubeconfig=/etc/kubernetes/provider.conf", "run a program"},
		"kubeconfig with a token file": {"kube-controller-manager --kubeconfig=/etc/kubernetes/tokenfile.conf", "names a file"},
		"kubeconfig with a key file":   {"kube-controller-manager --kubeconfig=/etc/kubernetes/keyfile.conf", "names a file"},
		"kubeconfig of another":        {"kube-scheduler --kubeconfig=/etc/kubernetes/as.conf", "somebody else"},
		"kubeconfig elsewhere":         {"kube-scheduler --kubeconfig=/etc/kubernetes/elsewhere.conf", "not https://ADDRESS:PORT"},
		"kubeconfig without TLS":       {"kube-scheduler --kubeconfig=/etc/kubernetes/plain.conf", "not https://ADDRESS:PORT"},
		"kubeconfig on a socket":       {"kube-scheduler --kubeconfig=/etc/kubernetes/unix.conf", "not https://ADDRESS:PORT"},
		"kubeconfig of anybody":        {"kube-scheduler --kubeconfig=/etc/kubernetes/insecure.conf", "must be verified"},
		"kubeconfig with a proxy":      {"kube-scheduler --kubeconfig=/etc/kubernetes/proxy.conf", "proxy-url is refused"},
		"two kubeconfigs":              {"kube-scheduler --kubeconfig=/etc/kubernetes/two.conf", "more than one document"},
		"a field twice":                {"kube-scheduler --kubeconfig=/etc/kubernetes/twice.conf", "there twice"},
		"scheduler":                    {"kube-scheduler --config=/etc/kubernetes/plan.yaml", ""},
		"scheduler with a program":     {"kube-scheduler --config=/etc/kubernetes/planexec.yaml", "run a program"},
		"scheduler of the computer":    {"kube-scheduler --config=/etc/kubernetes/planabs.yaml", "without the first slash"},
		"scheduler with a server":      {"kube-scheduler --config=/etc/kubernetes/extender.yaml", "extenders is refused"},
		"scheduler that writes":        {"kube-scheduler --write-config-to=/etc/x", "write a file"},
		"master":                       {"kube-scheduler --master=http://x", "that of the kubeconfig"},
		"programs of volumes":          {"kube-controller-manager --flex-volume-plugin-dir=/opt", "run a program"},
		"folders of the computer":      {"kube-controller-manager --enable-hostpath-provisioner=true", "folders on this computer"},
		"cloud":                        {"kube-controller-manager --cloud-provider=external", ""},
		"another cloud":                {"kube-controller-manager --cloud-provider=aws", "not possible on a local machine"},
		"cloud's file":                 {"kube-controller-manager --cloud-config=/etc/x", "no cloud"},
		"no signing key":               {"kube-controller-manager --cluster-signing-key-file=", ""},
		"etcd's file":                  {"etcd -config-file=/etc/x", "replace all flags"},
		"etcd's data in etc":           {"etcd --data-dir=/etc/kubernetes", "nothing is written to"},
		"etcd's data everywhere":       {"etcd --data-dir=/", "nothing is written to"},
		"etcd's data above":            {"etcd --data-dir=../../..", "nothing is written to"},
		"etcd's data below":            {"etcd --data-dir=../../var/lib/etcd", ""},
		"etcd's name as a path":        {"etcd --name=../../../x", "is not a plain word"},
		"etcd's log":                   {"etcd --log-outputs=/var/x", "use default or stdout or stderr"},
		"etcd open to all":             {"etcd --client-cert-auth=false", "can only be true"},
		"etcd without TLS":             {"etcd --listen-client-urls=http://127.0.0.1:2379", "is not https://ADDRESS:PORT"},
		"etcd on a socket":             {"etcd --listen-client-urls=unix://x:2379", "is not https://ADDRESS:PORT"},
		"member elsewhere":             {"etcd --initial-cluster=a=https://127.3.16.11:2380,b=https://10.0.0.1:2380", "is not https://ADDRESS:2380"},
		"member on a socket":           {"etcd --initial-cluster=a=unix://x:2380", "is not https://ADDRESS:2380"},
		"discovery":                    {"etcd --discovery=https://x", "found by their addresses"},
		"tokens with keys":             {"etcd --auth-token=jwt,pub-key=/x", "use simple"},
		"unknown, as Go has it":        {"etcd -experimental-x", "not on the list"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Pod(pod(strings.Fields(c.args)...), m)
			switch refused := new(RefusedError); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%v, %v; want %q", r.Args, err, c.want)
			}
			if m := m; c.want != "" {
				m.AllowEverything = true
				if _, err := Pod(pod(strings.Fields(c.args)...), m); err != nil {
					t.Errorf("with everything allowed: %v", err)
				}
			}
		})
	}
}

func TestRefusedEnvironmentAndVolumes(t *testing.T) {
	m := newRoot(t)
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"proxy":       {func(p *corev1.Pod) { setEnv(p, "HTTPS_PROXY", "http://x") }, "the environment variable HTTPS_PROXY of etcd is refused"},
		"flag":        {func(p *corev1.Pod) { setEnv(p, "ETCD_DATA_DIR", "/x") }, "give it to etcd as a flag"},
		"libraries":   {func(p *corev1.Pod) { setEnv(p, "GODEBUG", "x=1") }, "not on the list of variables"},
		"authorities": {func(p *corev1.Pod) { setEnv(p, "SSL_CERT_FILE", "/x") }, "not on the list of variables"},
		"plane":       {func(p *corev1.Pod) { setEnv(p, "KUBERNETES_SERVICE_HOST", "x") }, "not on the list of variables"},
		"gate":        {func(p *corev1.Pod) { setEnv(p, "KUBE_FEATURE_WatchListClient", "true") }, ""},
		"memory":      {func(p *corev1.Pod) { setEnv(p, "GOMEMLIMIT", "100MiB") }, ""},
		"upwards":     {func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = "/etc/../../x" }, "leads upwards"},
		"relative":    {func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = "../x" }, "is not absolute"},
		"sub-path":    {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPath = "../../x" }, "leads upwards"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("etcd")
			c.change(p)
			r, err := Pod(p, m)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want %q", r, err, c.want)
			}
		})
	}
}

func setEnv(p *corev1.Pod, name, value string) {
	p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
}

// FuzzArguments: whatever a pod says, no path that is accepted leads out of the machine, and no URL out of the cluster.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"--client-ca-file=/link", "--client-ca-file\x00../../x", "--audit-log-path=/m/../../x", "--etcd-servers=unix:///x",
		"-data-dir=/var/lib/etcd", "--data-dir=/var/up/x", "--tls-sni-cert-key=/a,/../b:c", "--oidc-ca-file=/etc/ssl/certs/../../passwd", "-v4",
		"--initial-cluster=a=https://127.3.16.11:2380", "--audit_log_path=/var/log/x", "--name=a/../b", "--cert-dir=/m", "--kubeconfig=etc/kubernetes/good.conf",
	} {
		f.Add(uint8(len(s)), s, "/m", "/var/lib", "")
	}
	m := newRoot(f)
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, program uint8, args, mountPath, hostPath, subPath string) {
		name := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}[program%4]
		p := pod(append([]string{name}, strings.Split(args, "\x00")...)...)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostPath}}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "x", MountPath: mountPath, SubPath: subPath})
		r, err := Pod(p, m)
		if err != nil {
			return
		}
		for _, a := range r.Args[1:] {
			checkArgument(t, root, m, a)
		}
	})
}

// checkArgument looks at an accepted argument without knowing the lists.
func checkArgument(t *testing.T, root *os.Root, m Machine, a string) {
	flag, value, ok := strings.Cut(a, "=")
	if !ok || !strings.HasPrefix(flag, "--") {
		t.Fatalf("%q is not in the one form", a)
	}
	isFile := strings.HasSuffix(flag, "file") || strings.HasSuffix(flag, "-dir") || strings.HasSuffix(flag, "config") || strings.HasSuffix(flag, "-path") ||
		strings.HasSuffix(flag, "-key") || strings.HasSuffix(flag, "certificate") || flag == "--tls-sni-cert-key"
	if isFile && value != "" && value != "-" {
		files, _, _ := strings.Cut(value, ":")
		for _, file := range strings.Split(files, ",") {
			rel, below := strings.CutPrefix(file, m.Root+"/")
			if !below && file != m.Root && !strings.HasPrefix(file, "/etc/ssl/certs/") || strings.Contains(file+"/", "/../") {
				t.Fatalf("%q leads out of the machine", a)
			}
			if _, err := root.Stat(rel); below && err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%q leads out of the machine: %v", a, err)
			}
		}
	}
	if strings.Contains(value, "unix:") && (strings.HasSuffix(flag, "-urls") || strings.HasSuffix(flag, "-servers") || strings.HasSuffix(flag, "cluster")) {
		t.Fatalf("%q is a socket", a)
	}
}
