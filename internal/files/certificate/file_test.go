package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// writePair writes a certificate with its key, of a name.
func writePair(t *testing.T, cert, key, name string) {
	t.Helper()
	k := newKey(t)
	c, err := SelfSign(&x509.Certificate{Subject: pkix.Name{CommonName: name}}, Terms{SerialBits: 64, Now: time.Now(), Lifetime: time.Hour}, k)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string][]byte{cert: Encode(c), key: encodeKey(t, k)} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Now())
	problems := 0
	f := &File{
		Certificate: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k"), Clock: clock, OnProblem: func(error) { problems++ },
	}
	if _, err := f.Get(); err == nil {
		t.Error("there are no files")
	}
	check := func(want string) {
		t.Helper()
		clock.SetTime(clock.Now().Add(checkInterval))
		c, err := f.Get()
		if err != nil || c.Leaf.Subject.CommonName != want {
			t.Errorf("%v %v, want %s", c, err, want)
		}
	}
	writePair(t, f.Certificate, f.Key, "first")
	check("first")
	writePair(t, f.Certificate, f.Key, "second, with another length")
	if c, err := f.Get(); err != nil || c.Leaf.Subject.CommonName != "first" {
		t.Errorf("it is read at each use: %v", err)
	}
	check("second, with another length")
	if err := os.WriteFile(f.Key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("second, with another length")
	check("second, with another length")
	if problems != 1 {
		t.Errorf("a bad key was told of %d times", problems)
	}
	if err := os.Remove(f.Certificate); err != nil {
		t.Fatal(err)
	}
	check("second, with another length")
	writePair(t, f.Certificate, f.Key, "third")
	check("third")
}
