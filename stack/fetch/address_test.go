package fetch

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	const free, inside, never = "free", "inside", "never"
	for address, want := range map[string]string{
		"8.8.8.8":              free,
		"2606:4700::1111":      free,
		"172.32.0.1":           free, // just behind the private ones
		"100.128.0.1":          free,
		"::ffff:8.8.8.8":       free,
		"64:ff9b::8.8.8.8":     free,
		"2002:808:808::1":      free,
		"127.0.0.1":            inside,
		"127.255.255.254":      inside,
		"::1":                  inside,
		"::ffff:127.0.0.1":     inside,
		"::ffff:10.1.2.3":      inside,
		"::127.0.0.1":          inside,
		"64:ff9b::127.0.0.1":   inside,
		"64:ff9b:1::127.0.0.1": inside,
		"2002:7f00:1::":        inside,
		"2002:a00:1::1":        inside,
		"2001::7f00:1":         inside,
		"0.0.0.0":              inside,
		"0.1.2.3":              inside,
		"::":                   inside,
		"10.0.0.1":             inside,
		"172.16.0.1":           inside,
		"172.31.255.255":       inside,
		"192.168.1.1":          inside,
		"100.64.0.1":           inside,
		"192.0.0.1":            inside,
		"198.18.0.1":           inside,
		"255.255.255.255":      inside,
		"fd12::1":              inside,
		"fc00::1":              inside,
		"fec0::1":              inside,
		"169.254.169.254":      never,
		"169.254.0.1":          never,
		"fe80::1":              never,
		"fe80::1%eth0":         never,
		"::ffff:169.254.0.1":   never,
		"::169.254.169.254":    never,
		"64:ff9b::a9fe:a9fe":   never,
		"2002:a9fe:a9fe::":     never,
		"fd00:ec2::254":        never,
		"fd20:ce::254":         never,
		"100.100.100.200":      never,
		"192.0.0.192":          never,
		"224.0.0.1":            never,
		"ff02::1":              never,
	} {
		t.Run(address, func(t *testing.T) {
			a := netip.MustParseAddr(address)
			got := free
			if err := checkAddress("host", a, false); err != nil {
				got = inside
				if !errors.Is(err, ErrRefused) || !strings.HasPrefix(err.Error(), "host has the ") || !strings.Contains(err.Error(), a.String()) {
					t.Errorf("%v", err)
				}
			}
			if checkAddress("host", a, true) != nil {
				got = never
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestTrustedHosts(t *testing.T) {
	list := newTrustedHosts([]string{"Registry.Example.", "localhost:5000", "[::1]:5000", "10.0.0.1", "fd12::1"})
	for hostPort, want := range map[[2]string]bool{
		{"registry.example", "443"}:      true,
		{"REGISTRY.example.", "80"}:      true,
		{"sub.registry.example", "443"}:  false,
		{"registry.example.evil", "443"}: false,
		{"localhost", "5000"}:            true,
		{"localhost", "22"}:              false,
		{"::1", "5000"}:                  true,
		{"0:0:0:0:0:0:0:1", "5000"}:      true,
		{"::1", "5001"}:                  false,
		{"10.0.0.1", "443"}:              true,
		{"::ffff:10.0.0.1", "443"}:       true,
		{"10.0.0.2", "443"}:              false,
		{"fd12::1", "443"}:               true,
		{"", "443"}:                      false,
	} {
		if got := list.has(hostPort[0], hostPort[1]); got != want {
			t.Errorf("%q: %v", hostPort, got)
		}
	}
}

// Proxies that the environment names are not used. The test looks at the transport, as net/http reads
// the environment only once in the life of a process.
func TestNoProxy(t *testing.T) {
	if New(Policy{}, Limits{}).http.Transport.(*policyTransport).next.Proxy != nil {
		t.Error("there is a proxy")
	}
}
