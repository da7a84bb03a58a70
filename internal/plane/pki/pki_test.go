package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	testingclock "k8s.io/utils/clock/testing"
)

const day = 24 * time.Hour

var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a pki directory with a clock that tests can set.
type fixture struct {
	t       *testing.T
	cfg     Config
	clock   *testingclock.FakeClock
	renewed []string
}

func newFixture(t *testing.T) *fixture {
	dir := t.TempDir()
	w := &fixture{t: t, clock: testingclock.NewFakeClock(startTime)}
	w.cfg = Config{
		Dir: filepath.Join(dir, "pki"), Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), Server: "https://127.0.0.1:7443",
		Names: []string{"plane.example.org", "192.0.2.7", "127.0.0.1"}, CALife: 900 * day, LeafLife: 90 * day, Clock: w.clock,
		OnRenew: func(f string) { w.renewed = append(w.renewed, f) },
	}
	return w
}

func (w *fixture) open() *PKI {
	w.t.Helper()
	w.renewed = nil
	p, err := New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *fixture) certificate(p *PKI, file string) *x509.Certificate {
	w.t.Helper()
	c, ok, err := loadKeyPair(p.Path(file))
	if err != nil || !ok {
		w.t.Fatalf("loading %s: %v, %v", file, ok, err)
	}
	return c.cert
}

// verify checks a certificate as a client or server would.
func (w *fixture) verify(p *PKI, file, trust, name string, usage x509.ExtKeyUsage, caPEM []byte) error {
	w.t.Helper()
	if caPEM == nil {
		var err error
		if caPEM, err = os.ReadFile(p.Path(trust)); err != nil {
			w.t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caPEM)
	_, err := w.certificate(p, file).Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: w.clock.Now(), KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func TestCertificatesAreGoodForTheirUseOnly(t *testing.T) {
	w := newFixture(t)
	p := w.open()
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "plane.example.org", "192.0.2.7"} {
		if err := w.verify(p, apiserverFile, serverCACertFile, name, x509.ExtKeyUsageServerAuth, nil); err != nil {
			t.Errorf("the API server as %s: %v", name, err)
		}
	}
	if err := w.verify(p, apiserverFile, serverCACertFile, "elsewhere.example.org", x509.ExtKeyUsageServerAuth, nil); err == nil {
		t.Error("the API server's certificate is good for any name")
	}
	if err := w.verify(p, apiserverFile, clientCACertFile, "", x509.ExtKeyUsageClientAuth, nil); err == nil {
		t.Error("a serving certificate can log in")
	}
	if err := w.verify(p, adminFile, clientCACertFile, "", x509.ExtKeyUsageClientAuth, nil); err != nil {
		t.Errorf("the administrator: %v", err)
	}
	if err := w.verify(p, adminFile, serverCACertFile, "", x509.ExtKeyUsageServerAuth, nil); err == nil {
		t.Error("the administrator's certificate can serve")
	}
	if s := w.certificate(p, adminFile).Subject; slices.Contains(s.Organization, "system:masters") || !slices.Contains(s.Organization, AdminGroup) {
		t.Errorf("the administrator's groups are %v", s.Organization)
	}
}

func TestEverythingIsPrivate(t *testing.T) {
	w := newFixture(t)
	w.open()
	n := 0
	err := filepath.WalkDir(filepath.Dir(w.cfg.Dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil || n < 8 {
		t.Errorf("looked at %d files: %v", n, err)
	}
}

func TestKubeconfig(t *testing.T) {
	w := newFixture(t)
	w.open()
	cfg, err := clientcmd.BuildConfigFromFlags("", w.cfg.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != w.cfg.Server {
		t.Errorf("server is %s", cfg.Host)
	}
	if _, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData); err != nil {
		t.Errorf("certificate and key do not fit: %v", err)
	}
}

func TestNothingChangesWithoutNeed(t *testing.T) {
	w := newFixture(t)
	w.open()
	w.clock.Step(59 * day)
	w.open()
	if len(w.renewed) > 0 {
		t.Errorf("renewed %v before two thirds of their life", w.renewed)
	}
}

func TestRenewal(t *testing.T) {
	w := newFixture(t)
	p := w.open()
	oldCA, err := p.ServerCA()
	if err != nil {
		t.Fatal(err)
	}
	oldLeaf := w.certificate(p, apiserverFile)

	w.clock.Step(61 * day)
	p = w.open()
	if diff := slices.Compare(w.renewed, []string{apiserverFile, webhookFile, adminFile}); diff != 0 {
		t.Errorf("after two thirds of the leaves' life renewed %v", w.renewed)
	}
	if !w.clock.Now().Before(oldLeaf.NotAfter) {
		t.Error("renewed only after the old one had expired")
	}
	if w.certificate(p, apiserverFile).NotAfter.Sub(w.clock.Now()) != 90*day {
		t.Error("the new certificate does not live its whole life")
	}

	w.clock.Step(540 * day)
	p = w.open()
	if !slices.Contains(w.renewed, serverCAFile) || !slices.Contains(w.renewed, clientCAFile) {
		t.Fatalf("after two thirds of the authorities' life renewed %v", w.renewed)
	}
	// Whoever copied the old authority can go on until it expires by itself.
	if err := w.verify(p, apiserverFile, "", "localhost", x509.ExtKeyUsageServerAuth, oldCA); err != nil {
		t.Errorf("a client with the old authority: %v", err)
	}
	if err := w.verify(p, apiserverFile, serverCACertFile, "localhost", x509.ExtKeyUsageServerAuth, nil); err != nil {
		t.Errorf("a client with the new authority: %v", err)
	}
}

func TestShortLife(t *testing.T) {
	w := newFixture(t)
	w.cfg.LeafLife = 2 * time.Minute
	w.open()
	w.clock.Step(79 * time.Second)
	if w.open(); len(w.renewed) > 0 {
		t.Errorf("renewed %v before two thirds of two minutes", w.renewed)
	}
	w.clock.Step(2 * time.Second)
	if w.open(); len(w.renewed) != 3 {
		t.Errorf("renewed %v after two thirds of two minutes, want the three leaves", w.renewed)
	}
}

func TestRunRenewsWhileServing(t *testing.T) {
	w := newFixture(t)
	renewed := make(chan string, 20)
	w.cfg.OnRenew = func(f string) { renewed <- f }
	p := w.open()
	before, err := p.WebhookCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for len(renewed) > 0 {
		<-renewed // what was made at first
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	<-p.Ready()
	w.clock.Step(70 * day)
	for range 3 {
		select {
		case <-renewed:
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was renewed")
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for now, _ := p.WebhookCertificate(nil); now == before; now, _ = p.WebhookCertificate(nil) {
		if time.Now().After(deadline) {
			t.Fatal("the webhook server still gets the old certificate")
		}
	}
	if err := p.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
}

func TestNewNamesMakeANewCertificate(t *testing.T) {
	w := newFixture(t)
	w.open()
	w.cfg.Names = append(w.cfg.Names, "new.example.org")
	p := w.open()
	if !slices.Equal(w.renewed, []string{apiserverFile}) {
		t.Errorf("renewed %v", w.renewed)
	}
	if err := w.verify(p, apiserverFile, serverCACertFile, "new.example.org", x509.ExtKeyUsageServerAuth, nil); err != nil {
		t.Error(err)
	}
}

// TestKeysAreNeverReplaced: without the old keys all tokens would be invalid and all Secrets would be lost.
func TestKeysAreNeverReplaced(t *testing.T) {
	for _, file := range []string{serviceAccountFile, encryptionFile} {
		t.Run(file, func(t *testing.T) {
			w := newFixture(t)
			p := w.open()
			before, err := os.ReadFile(p.Path(file))
			if err != nil {
				t.Fatal(err)
			}
			w.clock.Step(10000 * day)
			w.open()
			if after, err := os.ReadFile(p.Path(file)); err != nil || string(after) != string(before) {
				t.Errorf("the key changed: %v", err)
			}
			w.cfg.StoreExists = true
			if err := os.Remove(p.Path(file)); err != nil {
				t.Fatal(err)
			}
			if _, err := New(w.cfg); err == nil || !strings.Contains(err.Error(), "restore it from a backup") {
				t.Errorf("New() without the key = %v", err)
			}
			if err := os.WriteFile(p.Path(file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := New(w.cfg); err == nil || !strings.Contains(err.Error(), "is empty") {
				t.Errorf("New() with an empty key = %v", err)
			}
		})
	}
}

func TestDamagedCertificate(t *testing.T) {
	w := newFixture(t)
	p := w.open()
	for name, content := range map[string][]byte{
		"nonsense":       []byte("nonsense"),
		"half a file":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.certificate(p, apiserverFile).Raw}),
		"not ASN.1":      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1, 2, 3}}),
		"key of no kind": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(p.Path(apiserverFile), content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := New(w.cfg); err == nil || !strings.Contains(err.Error(), apiserverFile+" is damaged") {
				t.Errorf("New() = %v", err)
			}
		})
	}
}

func TestClockSetBack(t *testing.T) {
	w := newFixture(t)
	w.open()
	w.clock.SetTime(startTime.Add(-day))
	p := w.open()
	if err := w.verify(p, apiserverFile, serverCACertFile, "localhost", x509.ExtKeyUsageServerAuth, nil); err != nil {
		t.Errorf("after the clock was set back: %v", err)
	}
}

// The clock of a running plane jumps by an hour, forward and back, also with certificates that live shorter than that:
// after the next look at them, those in use are good, by their authority in use.
func TestClockJumps(t *testing.T) {
	for name, life := range map[string]time.Duration{"a year": 365 * day, "two minutes": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.cfg.LeafLife = life
			p := w.open()
			for i, jump := range []time.Duration{time.Hour, -time.Hour, -time.Hour, 2 * time.Hour, -time.Hour} {
				w.clock.SetTime(w.clock.Now().Add(jump))
				if err := p.ensure(); err != nil {
					t.Fatalf("jump %d: %v", i, err)
				}
				for file, c := range map[string]struct {
					trust string
					usage x509.ExtKeyUsage
				}{
					apiserverFile: {serverCACertFile, x509.ExtKeyUsageServerAuth}, adminFile: {clientCACertFile, x509.ExtKeyUsageClientAuth},
				} {
					if err := w.verify(p, file, c.trust, "", c.usage, nil); err != nil {
						t.Errorf("%s after jump %d by %s: %v", file, i, jump, err)
					}
				}
			}
		})
	}
}
