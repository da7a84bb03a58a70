package plane

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestListeners finds every socket the process listens on in the kernel's tables: one TCP port
// and unix sockets that have a path below the data directory. A socket without a path (an
// abstract one) could be opened by every user of the machine.
func TestListeners(t *testing.T) {
	p := shared.Get(t)
	inodes := socketInodes(t, p.PID())
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.Status(t).Address, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	var tcp []string
	for _, table := range []string{"tcp", "tcp6"} {
		for _, f := range procTable(t, p.PID(), table) {
			const listen = "0A"
			if f[3] == listen && inodes[f[9]] {
				hexPort := f[1][strings.LastIndex(f[1], ":")+1:]
				n, err := strconv.ParseUint(hexPort, 16, 16)
				if err != nil {
					t.Fatal(err)
				}
				tcp = append(tcp, strconv.FormatUint(n, 10))
			}
		}
	}
	if len(tcp) != 1 || tcp[0] != port {
		t.Errorf("polderd listens on TCP ports %v, want only %s", tcp, port)
	}
	for _, table := range []string{"udp", "udp6"} {
		for _, f := range procTable(t, p.PID(), table) {
			if inodes[f[9]] {
				t.Errorf("polderd has a UDP socket: %v", f)
			}
		}
	}
	listening := 0
	for _, f := range procTable(t, p.PID(), "unix") {
		const acceptsConnections = "00010000"
		if f[3] != acceptsConnections || !inodes[f[6]] {
			continue
		}
		listening++
		if len(f) < 8 || !strings.HasPrefix(f[7], p.Data+"/") {
			t.Errorf("polderd listens on a unix socket outside its data directory: %v", f)
		}
	}
	if listening == 0 {
		t.Error("found no unix socket of the store; the test looks in the wrong place")
	}
}

// socketInodes are the sockets a process has open.
func socketInodes(t *testing.T, pid int) map[string]bool {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]bool{}
	for _, e := range entries {
		if l, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			if inode, ok := strings.CutPrefix(l, "socket:["); ok {
				m[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return m
}

func procTable(t *testing.T, pid int, name string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// TestDataDirectoryIsClosed looks at the data directory as another user of the machine would.
func TestDataDirectoryIsClosed(t *testing.T) {
	p := shared.Get(t)
	info, err := os.Stat(p.Data)
	if err != nil {
		t.Fatal(err)
	}
	if perm := info.Mode().Perm(); perm != 0o700 {
		t.Errorf("the data directory has mode %04o, want 0700", perm)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("polderd runs as root in this test; it must show that it need not")
	}
	keys := 0
	err = filepath.WalkDir(p.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(path, filepath.Join(p.Data, "etcd")) {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		keys++
		return nil
	})
	if err != nil || keys < 8 {
		t.Errorf("looked at %d files: %v", keys, err)
	}
}

// TestSecretsAreEncrypted searches etcd's files for what was written: the bytes of a
// ConfigMap must be there, or the search would show nothing, and those of a Secret must not.
func TestSecretsAreEncrypted(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	const open, secret = "canary-in-the-open-4711", "canary-to-be-hidden-4712"
	if err := c.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "open"}, Data: map[string]string{"k": open}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "secret"}, StringData: map[string]string{"k": secret}}); err != nil {
		t.Fatal(err)
	}
	found := searchFiles(t, filepath.Join(p.Data, "etcd"), open, secret, base64.StdEncoding.EncodeToString([]byte(secret)))
	if !found[open] {
		t.Error("the ConfigMap's bytes are not in the store; the test looks in the wrong place")
	}
	delete(found, open)
	if len(found) > 0 {
		t.Errorf("the store holds a Secret in the clear: %v", found)
	}
}

func searchFiles(t *testing.T, dir string, texts ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				found[text] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
