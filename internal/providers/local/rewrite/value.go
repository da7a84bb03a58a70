package rewrite

import (
	"net/netip"
	"strings"
)

// removeDuplicates drops repeated elements of a list, which etcd would try to listen on twice.
func removeDuplicates(list string) string {
	seen := map[string]bool{}
	var out []string
	for _, e := range strings.Split(list, ",") {
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	return strings.Join(out, ",")
}

// AdvertiseAddress is the address an API server claims for the endpoints of the service "kubernetes":
// not a loopback address, which is refused, but one of the range for benchmarks (RFC 2544) that
// nobody routes. Its last 16 bits are the machine's, so it is unique within a cluster.
func AdvertiseAddress(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.AddrFrom4([4]byte{198, 18, b[2], b[3]})
}
