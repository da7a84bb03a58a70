package fetch

import (
	"fmt"
	"net/netip"
)

// forbidden are addresses nobody is ever connected to: there are the secrets of the machine.
var forbidden = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},
}

// inner are addresses that only trusted hosts may have.
var inner = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "private"}, // of carriers
	{netip.MustParsePrefix("192.0.0.0/24"), "private"},  // of protocols
	{netip.MustParsePrefix("198.18.0.0/15"), "private"}, // of benchmarks
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "private"}, // of translators
	{netip.MustParsePrefix("2001::/32"), "tunnel"},       // Teredo: who is behind it cannot be said
}

// wrapped are prefixes of IPv6 addresses that have one of IPv4 in them, and where. Loopback and the
// unspecified address lie in the first, and are none.
var wrapped = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// unwrap is the address a packet ends at.
func unwrap(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if a.Is4() || a.IsLoopback() || a.IsUnspecified() {
		return a
	}
	for _, w := range wrapped {
		if w.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[w.at : w.at+4]))
		}
	}
	return a
}

// checkAddress says why a host must not be connected to at an address.
func checkAddress(host string, a netip.Addr, trusted bool) error {
	end := unwrap(a)
	for _, f := range forbidden {
		if f.prefix.Contains(end) {
			return refuse("%s has the %s address %s, which nobody is connected to", host, f.kind, a)
		}
	}
	if trusted {
		return nil
	}
	for _, i := range inner {
		if i.prefix.Contains(end) {
			return refuse("%s has the %s address %s, and is not trusted; if you mean this host, name it as trusted", host, i.kind, a)
		}
	}
	return nil
}

// refusal is an error of the policy.
type refusal struct{ reason string }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

func (r *refusal) Error() string { return r.reason }

// Unwrap makes every refusal an ErrRefused.
func (r *refusal) Unwrap() error { return ErrRefused }
