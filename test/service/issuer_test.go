package service

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// issuer is a real one, in a process of its own.
type issuer struct {
	url string
	ca  string // PEM
}

// people are those who can log in, with what their tokens say of them.
type people map[string]map[string]any

// startIssuer starts an issuer whose ID tokens are good for a time.
func startIssuer(t *testing.T, life time.Duration, users people) *issuer {
	t.Helper()
	dir, err := filepath.Abs("../../bin/issuer")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node")); err != nil {
		t.Fatal("bin/issuer is not installed; run: make bin/issuer/node")
	}
	files := t.TempDir()
	cert, key := filepath.Join(files, "issuer.crt"), filepath.Join(files, "issuer.key")
	i := &issuer{ca: writeCertificate(t, cert, key)}
	who, err := json.Marshal(users)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(dir, "node"), "issuer.mjs")
	c.Dir = dir
	c.Env = []string{"PATH=/usr/bin:/bin", "ISSUER_KEY=" + key, "ISSUER_CERT=" + cert, "ISSUER_USERS=" + string(who),
		fmt.Sprintf("ISSUER_TTL=%d", int(life.Seconds()))}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &strings.Builder{}
	c.Stderr = errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		c.Wait()
		t.Fatalf("the issuer does not start: %s", errs)
	}
	i.url = lines.Text()
	return i
}

// writeCertificate makes a certificate that vouches for itself.
func writeCertificate(t *testing.T, certFile, keyFile string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(certFile, cert, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	return string(cert)
}

// What a person's browser finds in the issuer's pages.
var (
	formPattern   = regexp.MustCompile(`<form[^>]*action="([^"]+)"`)
	inputPattern  = regexp.MustCompile(`<input[^>]*>`)
	namePattern   = regexp.MustCompile(`name="([^"]+)"`)
	valuePattern  = regexp.MustCompile(`value="([^"]*)"`)
	markupPattern = regexp.MustCompile(`(?s)<style.*?</style>|<[^>]*>`)
)

// logIn does what a person does in a browser: it opens the address, fills in each form that comes, and returns the text of
// the page that has none. fields are what it types beside its name.
func (i *issuer) logIn(t *testing.T, address, name string, fields map[string]string) string {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(i.ca))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Jar: jar, Timeout: wait}
	defer browser.CloseIdleConnections()
	res, err := browser.Get(address)
	for range 12 {
		if err != nil {
			t.Errorf("the browser of %s: %v", name, err)
			return ""
		}
		b, readErr := io.ReadAll(res.Body)
		res.Body.Close()
		if readErr != nil {
			t.Errorf("the browser of %s: %v", name, readErr)
			return ""
		}
		page := string(b)
		form := formPattern.FindStringSubmatch(page)
		if form == nil {
			return strings.Join(strings.Fields(markupPattern.ReplaceAllString(page, " ")), " ")
		}
		to, parseErr := res.Request.URL.Parse(html.UnescapeString(form[1]))
		if parseErr != nil {
			t.Errorf("the browser of %s: %v", name, parseErr)
			return ""
		}
		res, err = browser.PostForm(to.String(), fillIn(page, name, fields))
	}
	t.Errorf("the browser of %s sees one form after the other", name)
	return ""
}

func fillIn(page, name string, fields map[string]string) url.Values {
	form := url.Values{}
	for _, input := range inputPattern.FindAllString(page, -1) {
		n := namePattern.FindStringSubmatch(input)
		if n == nil || n[1] == "abort" {
			continue
		}
		value := ""
		if v := valuePattern.FindStringSubmatch(input); v != nil {
			value = html.UnescapeString(v[1])
		}
		switch typed, ok := fields[n[1]]; {
		case ok:
			value = typed
		case n[1] == "login":
			value = name
		case n[1] == "password":
			value = "any"
		}
		form.Set(n[1], value)
	}
	return form
}
