package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestRenewed(t *testing.T) {
	c := clocktesting.NewFakeClock(now)
	made, renewals := 0, 0
	var fault error
	r := &Renewed{Clock: c, OnRenew: func() { renewals++ }, Make: func() (tls.Certificate, error) {
		if fault != nil {
			return tls.Certificate{}, fault
		}
		made++
		key := newKey(t)
		cert, err := SelfSign(&x509.Certificate{Subject: pkix.Name{CommonName: "c"}}, Terms{SerialBits: 64, Now: c.Now(), Lifetime: 90 * time.Hour}, key)
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, nil
	}}
	fault = errors.New("no authority yet")
	if _, err := r.Get(); !errors.Is(err, fault) {
		t.Errorf("without a certificate: %v", err)
	}
	for _, step := range []struct {
		name           string
		after          time.Duration // since the last step
		fault          error
		made, renewals int
	}{
		{"the first", 0, nil, 1, 0},
		{"in use", 59 * time.Hour, nil, 1, 0},
		{"due", time.Hour + time.Second, nil, 2, 1},
		{"in use again", time.Minute, nil, 2, 1},
		{"due, but it cannot be made", 61 * time.Hour, errors.New("disk full"), 2, 1},
		{"due, and it can", 0, nil, 3, 2},
		{"the clock is set back", -200 * time.Hour, nil, 4, 3},
	} {
		c.SetTime(c.Now().Add(step.after))
		fault = step.fault
		got, err := r.Get()
		if err != nil || got.Leaf == nil || made != step.made || renewals != step.renewals {
			t.Fatalf("%s: %v, made %d, want %d; %d renewals, want %d", step.name, err, made, step.made, renewals, step.renewals)
		}
		if step.fault == nil && IsDue(got.Leaf, c.Now()) {
			t.Errorf("%s: it is due: %s to %s at %s", step.name, got.Leaf.NotBefore, got.Leaf.NotAfter, c.Now())
		}
	}
}

// A certificate that comes again, because there is no other, is no renewal: connections need not go.
func TestRenewedKeepsTheSame(t *testing.T) {
	c := clocktesting.NewFakeClock(now)
	key := newKey(t)
	cert, err := SelfSign(&x509.Certificate{}, Terms{SerialBits: 64, Now: c.Now(), Lifetime: time.Hour}, key)
	if err != nil {
		t.Fatal(err)
	}
	renewals := 0
	r := &Renewed{Clock: c, OnRenew: func() { renewals++ }, Make: func() (tls.Certificate, error) {
		return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, nil
	}}
	for range 3 {
		if _, err := r.Get(); err != nil {
			t.Fatal(err)
		}
		c.Step(50 * time.Minute)
	}
	if renewals != 0 {
		t.Errorf("%d renewals", renewals)
	}
}
