package rewrite

import (
	"net/netip"
	"strings"
)

// separators stand between the parts of a flag's value: lists, URLs with paths, key=value pairs.
const separators = ",;= "

// rewritePaths replaces every path of the container in a value by the path on the machine.
func (w *rewriter) rewritePaths(value string) string {
	return eachPart(value, func(part string) string {
		prefix := ""
		if rest, ok := strings.CutPrefix(part, "file://"); ok {
			prefix, part = "file://", rest
		}
		for _, m := range w.mounts {
			rest, ok := strings.CutPrefix(part, m.containerPath)
			if !ok || rest != "" && rest[0] != '/' {
				continue
			}
			if sharedDirs[m.hostPath] {
				return prefix + part
			}
			return prefix + w.machine.Root + m.hostPath + rest
		}
		return prefix + part
	})
}

// rewriteAddresses replaces what means "this machine", alone or in a URL or with a port.
func (w *rewriter) rewriteAddresses(value string) string {
	return eachPart(value, func(part string) string {
		scheme, rest, found := strings.Cut(part, "://")
		if !found {
			scheme, rest = "", part
		} else {
			scheme += "://"
		}
		for _, own := range []string{"127.0.0.1", "0.0.0.0", "localhost", "[::1]", "[::]", "::1", "::"} {
			tail, ok := strings.CutPrefix(rest, own)
			if ok && (tail == "" || tail[0] == ':' && own[0] != ':' || tail[0] == '/') {
				return scheme + w.machine.Address.String() + tail
			}
		}
		return part
	})
}

// eachPart applies f to each part between separators.
func eachPart(value string, f func(string) string) string {
	var out strings.Builder
	start := 0
	for i := 0; i <= len(value); i++ {
		if i == len(value) || strings.IndexByte(separators, value[i]) >= 0 {
			out.WriteString(f(value[start:i]))
			if i < len(value) {
				out.WriteByte(value[i])
			}
			start = i + 1
		}
	}
	return out.String()
}

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
