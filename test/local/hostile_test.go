package local

import (
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

// batch is how many hostile pods run at a time.
const batch = 13

// TestHostileStack brings each of the attempts to a real machine, once where only the kernel stops them, and once where
// only the allow-lists do. Nothing of the plane may be touched either way.
func TestHostileStack(t *testing.T) {
	for name, confined := range map[string]bool{"allow-lists off": true, "confinement off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, confined)
			names := slices.Sorted(maps.Keys(attempts))
			for some := range slices.Chunk(names, batch) {
				v.try(t, some)
			}
			v.tryHarmless(t)
			if confined {
				t.Run("admin of the cluster", v.tryAsAdmin)
			}
			t.Logf("%d attempts; %d pods were started, %d refused", len(attempts), v.started, v.refused)
			// Flags whose values are paths are not refused: the path is one below the machine's own root.
			if !confined && v.refused < len(attempts)/2 {
				t.Error("most attempts should have been refused")
			}
		})
	}
}

// victim is a cluster with one machine, and the canaries around it.
type victim struct {
	*canaries
	cluster          *cluster
	confined         bool // the kernel confines, and no flag is checked; or the other way round
	machine          hostapi.MachineStatus
	started, refused int
	refusal          string // the last one's text
}

func newVictim(t *testing.T, confined bool) *victim {
	t.Helper()
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	if !confined {
		p.Env = []string{"POLDER_OFF_CONFINEMENT=1"}
	}
	p.Start(t)
	p.AwaitReady(t)
	if confined {
		writeFile(t, filepath.Join(p.Data, "allow-everything"), "")
	}
	v := &victim{confined: confined, canaries: newCanaries(t, filepath.Join(p.Data, "canary"))}
	v.cluster = create(t, p, "victim", newVersion, options{cluster: small("")})
	v.cluster.awaitAvailable(t, createTimeout)
	s := v.cluster.host(t)
	if s.Confinement == nil || s.Confinement.Complete() != confined {
		t.Fatalf("the cluster is confined by %v", s.Confinement)
	}
	v.machine = s.Machines[0]
	for name, content := range hostileFiles {
		writeFile(t, v.root("etc/kubernetes/evil", name), v.fill(content))
	}
	if err := os.Symlink(v.file, v.root("etc/kubernetes/evil/symlink")); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *victim) root(elem ...string) string {
	return filepath.Join(append([]string{v.machine.Dir, "root"}, elem...)...)
}

// fill puts the canaries into a text.
func (v *victim) fill(s string) string {
	_, port, _ := net.SplitHostPort(v.tcp)
	return strings.NewReplacer("$FILE", v.file, "$DIR", v.dir, "$SOCK", v.sock, "$TCP", v.tcp, "$PORT", port, "$ROOT", v.root(),
		"$EVIL", "/etc/kubernetes/evil", "$UP", strings.Repeat("../", 20)).Replace(s)
}

// try runs some attempts at the same time, each as a static pod, and takes them away again.
func (v *victim) try(t *testing.T, names []string) {
	t.Helper()
	for i, name := range names {
		v.writePod(t, "evil-"+name, attempts[name], 20000+10*i)
	}
	for _, name := range names {
		v.await(t, "evil-"+name)
	}
	v.removePods(t, names)
	if touched := v.touched(); len(touched) > 0 {
		t.Errorf("one of %q has touched %q", names, touched)
	}
}

// tryHarmless runs what the hostile pods are made from, unchanged: those must run, or the others were refused, or have
// ended, for another reason than the one they are about.
func (v *victim) tryHarmless(t *testing.T) {
	t.Helper()
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}
	before := v.refused
	for i, program := range names {
		v.writePod(t, "evil-"+program, attempt{program: program}, 20000+10*i)
	}
	for _, name := range names {
		v.await(t, "evil-"+name)
	}
	if v.refused != before {
		t.Errorf("one was refused: %s", v.refusal)
	}
	v.removePods(t, names)
}

// writePod writes the manifest of a static pod like the one kubeadm made for the program, with other ports and files of its
// own, and the attempt's arguments instead of those of the same names.
func (v *victim) writePod(t *testing.T, name string, a attempt, port int) {
	t.Helper()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	if b, err := os.ReadFile(v.root("etc/kubernetes/manifests", a.program+".yaml")); err == nil {
		if err := yaml.Unmarshal(b, pod); err != nil {
			t.Fatal(err)
		}
	} else {
		pod.Spec.Containers = []corev1.Container{{Name: "x", Command: []string{a.program}}}
	}
	pod.Name, pod.UID = name, ""
	c := &pod.Spec.Containers[0]
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
	var given []string
	for _, arg := range a.args {
		given = append(given, v.fill(arg))
	}
	c.Command = append(withoutFlags(c.Command, append(given, ownFlags(a.program, name, port)...)), merge(ownFlags(a.program, name, port), given)...)
	for k, e := range a.env {
		c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: v.fill(e)})
	}
	for inside, outside := range a.mounts {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "evil", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: outside}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "evil", MountPath: inside, SubPath: v.fill(a.subPath)})
	}
	b, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, v.root("etc/kubernetes/manifests", name+".yaml"), string(b))
}

// ownFlags keep a second process of a program out of the way of the machine's own.
func ownFlags(program, name string, port int) []string {
	switch program {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		own := []string{fmt.Sprintf("--secure-port=%d", port)}
		if program != "kube-apiserver" {
			own = append(own, "--leader-elect=false")
		}
		return own
	case "etcd":
		// What it advertises is that of the machine's own etcd: nobody dials a single member, and other ports are refused.
		return []string{
			"--data-dir=/var/lib/etcd/" + name, "--initial-cluster-state=new", fmt.Sprintf("--listen-peer-urls=https://127.0.0.1:%d", port),
			fmt.Sprintf("--listen-client-urls=https://127.0.0.1:%d", port+1), fmt.Sprintf("--listen-metrics-urls=http://127.0.0.1:%d", port+2),
		}
	}
	return nil
}

// merge adds flags to own, but for those of own that are given, too.
func merge(own, given []string) []string { return append(withoutFlags(own, given), given...) }

// withoutFlags leaves out the flags of a command that others name.
func withoutFlags(command, others []string) []string {
	names := map[string]bool{}
	for _, o := range others {
		n, _, _ := strings.Cut(strings.TrimLeft(o, "-"), "=")
		names[n] = strings.HasPrefix(o, "-")
	}
	return slices.DeleteFunc(slices.Clone(command), func(a string) bool {
		n, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return strings.HasPrefix(a, "-") && names[n]
	})
}

// await waits until a pod has ended or has run for a while, or was refused; programs other than the four are always refused.
func (v *victim) await(t *testing.T, name string) {
	t.Helper()
	begun := map[int]time.Time{}
	testenv.Eventually(t, 5*time.Minute, func() error {
		s, _, err := v.cluster.plane.HostStatus(t.Context(), v.cluster.namespace, v.cluster.name)
		if err != nil {
			return err
		}
		m := s.Machines[0]
		for _, p := range m.Processes {
			if p.Name != name {
				continue
			}
			if p.PID != 0 && begun[p.PID].IsZero() {
				begun[p.PID] = time.Now()
			}
			if strings.HasPrefix(p.LastExit, "is not started: ") {
				v.refused++
				v.refusal = p.LastExit
				return nil
			}
			if p.LastExit != "" || p.PID != 0 && time.Since(begun[p.PID]) > 5*time.Second {
				v.started++
				return nil
			}
		}
		if text := strings.Join(m.Boot.NotHonored, "\n") + m.Problem; strings.Contains(text, name) {
			v.refused++
			v.refusal = text
			return nil
		}
		return fmt.Errorf("%s has neither run nor been refused: %+v", name, m)
	})
}

func (v *victim) removePods(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(v.root("etc/kubernetes/manifests", "evil-"+name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, 5*time.Minute, func() error {
		s, _, err := v.cluster.plane.HostStatus(t.Context(), v.cluster.namespace, v.cluster.name)
		if err != nil {
			return err
		}
		for _, p := range s.Machines[0].Processes {
			if strings.HasPrefix(p.Name, "evil-") {
				return fmt.Errorf("%s is still there", p.Name)
			}
		}
		return nil
	})
}

// tryAsAdmin does what an admin of the workload cluster can.
func (v *victim) tryAsAdmin(t *testing.T) {
	k := v.cluster.workload(t)
	host, port, _ := net.SplitHostPort(v.tcp)
	t.Run("webhooks on the computer", func(t *testing.T) { v.tryWebhooks(t, k, port) })
	t.Run("a node that is on the computer", func(t *testing.T) {
		n, err := net.LookupPort("tcp", port)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = k.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		patch := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}],
"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, host, host, n)
		if _, err := k.CoreV1().Nodes().PatchStatus(t.Context(), "evil", []byte(patch)); err != nil {
			t.Fatal(err)
		}
		if b, err := k.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/evil/proxy/").DoRaw(t.Context()); err == nil {
			t.Errorf("it answers: %s", b)
		}
	})
	t.Run("a certificate for masters", func(t *testing.T) {
		key, err := keyutil.MakeEllipticPrivateKeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := keyutil.ParsePrivateKeyPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		request, err := cert.MakeCSR(parsed, &pkix.Name{CommonName: "evil", Organization: []string{"polder:admins", "system:masters"}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		if err == nil {
			t.Error("it is taken")
		}
	})
	if touched := v.touched(); len(touched) > 0 {
		t.Errorf("touched: %q", touched)
	}
}

// tryWebhooks registers webhooks with all spellings of this computer, and makes requests that would call them.
func (v *victim) tryWebhooks(t *testing.T, k kubernetes.Interface, port string) {
	t.Helper()
	o := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}
	for i, host := range []string{"127.0.0.1", "localhost", "localhost.", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "10.0.0.1"} {
		o.Webhooks = append(o.Webhooks, admissionv1.ValidatingWebhook{
			Name: fmt.Sprintf("w%d.evil.example", i), AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionv1.Ignore), TimeoutSeconds: ptr.To[int32](2),
			ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://" + host + ":" + port + "/x")},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		})
	}
	if _, err := k.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server learns of the webhooks by itself; one that fails closed shows when it has.
	closed := o.DeepCopy()
	closed.Name, closed.Webhooks = "evil-closed", closed.Webhooks[:1]
	closed.Webhooks[0].FailurePolicy = ptr.To(admissionv1.Fail)
	if _, err := k.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), closed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, createTimeout, func() error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "evil-", Namespace: "default"}}
		if _, err := k.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "evil.example") {
			return fmt.Errorf("the webhooks are not asked: %w", err)
		}
		return nil
	})
}

// canaries are files, a socket and a listener of the plane and the computer; whoever touches one is noted.
type canaries struct {
	dir, file, sock, tcp string

	mu   sync.Mutex
	seen []string
}

func newCanaries(t *testing.T, root string) *canaries {
	t.Helper()
	c := &canaries{dir: filepath.Join(root, "dir"), file: filepath.Join(root, "file"), sock: filepath.Join(root, "sock")}
	for _, d := range []string{root, c.dir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		testenv.Chown(t, d)
	}
	writeFile(t, c.file, "canary\n")
	for network, address := range map[string]string{"unix": c.sock, "tcp": "127.0.0.1:0"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if network == "tcp" {
			c.tcp = l.Addr().String()
		} else {
			testenv.Chown(t, c.sock)
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.note("a connection to " + l.Addr().String())
				_ = conn.Close()
			}
		}()
	}
	c.watch(t)
	return c
}

// watch notes every access to the file and the folder. The kernel tells of all, also of those that only read.
func (c *canaries) watch(t *testing.T) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.IN_OPEN | unix.IN_ACCESS | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE
	for _, p := range []string{c.file, c.dir} {
		if _, err := unix.InotifyAddWatch(fd, p, all); err != nil {
			t.Fatal(err)
		}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { _ = f.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			c.note(fmt.Sprintf("an access to files (%d bytes of events)", n))
		}
	}()
}

func (c *canaries) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, what)
}

// touched returns what was noted since the last call.
func (c *canaries) touched() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// writeFile writes a file as the user polderd runs as would, with the folders above it.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if dir := filepath.Dir(path); os.MkdirAll(dir, 0o700) == nil {
		testenv.Chown(t, dir)
	}
	// Aside first: the machine may look at once, and must not find half a file, or one it may not read yet.
	aside := filepath.Join(filepath.Dir(filepath.Dir(path)), "aside")
	if err := os.WriteFile(aside, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, aside)
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
}
