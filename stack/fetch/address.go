package fetch

import (
	"fmt"
	"net/netip"
)

// forbiddenPrefixes are addresses that are never connected to, trusted or not: clouds serve the secrets of the
// machine there.
var forbiddenPrefixes = []struct {
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

// nonPublicPrefixes are addresses that only trusted hosts may have.
var nonPublicPrefixes = []struct {
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

// ipv4InIPv6Prefixes are prefixes of IPv6 addresses that contain an address of IPv4, and at which byte. Loopback
// and the unspecified address lie in the first, and contain none.
var ipv4InIPv6Prefixes = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// effectiveAddress gives the address a packet ends at: that of IPv4 if one of IPv6 contains it.
func effectiveAddress(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if a.Is4() || a.IsLoopback() || a.IsUnspecified() {
		return a
	}
	for _, w := range ipv4InIPv6Prefixes {
		if w.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[w.at : w.at+4]))
		}
	}
	return a
}

// checkAddress says why a host must not be connected to at an address.
func checkAddress(host string, a netip.Addr, trusted bool) error {
	end := effectiveAddress(a)
	for _, f := range forbiddenPrefixes {
		if f.prefix.Contains(end) {
			return policyErrorf("%s has the %s address %s, which nobody is connected to", host, f.kind, a)
		}
	}
	if trusted {
		return nil
	}
	for _, i := range nonPublicPrefixes {
		if i.prefix.Contains(end) {
			return policyErrorf("%s has the %s address %s, and is not trusted; if you mean this host, name it as trusted", host,
				i.kind, a)
		}
	}
	return nil
}

// policyError is an error of the policy.
type policyError struct{ reason string }

func policyErrorf(format string, args ...any) error {
	return &policyError{fmt.Sprintf(format, args...)}
}

func (r *policyError) Error() string { return r.reason }

// Unwrap makes every error of the policy an ErrRefused.
func (r *policyError) Unwrap() error { return ErrRefused }
