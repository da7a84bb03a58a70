package rewrite

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/polder-kaas/polder/stack/allowlist"
)

// addressFlags name addresses of the machine itself. In other flags, an issuer of tokens for
// example, 127.0.0.1 means what it says.
var addressFlags = map[string]bool{
	"--bind-address": true, "--etcd-servers": true, "--etcd-servers-overrides": true, "--master": true,
	"--listen-client-urls": true, "--listen-client-http-urls": true, "--listen-peer-urls": true,
	"--listen-metrics-urls":   true,
	"--advertise-client-urls": true, "--initial-advertise-peer-urls": true, "--initial-cluster": true,
}

// rewriteUnchecked takes every flag and variable, and rewrites in them what looks like a path of a mount or an address
// of the machine. Only tests run it.
func (w *rewriter) rewriteUnchecked(args []string, env []corev1.EnvVar) {
	for _, a := range args {
		w.rewriteArgument(a)
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			w.result.Env = append(w.result.Env, e.Name+"="+w.rewritePaths(e.Value))
		}
	}
}

func (w *rewriter) rewriteArgument(a string) {
	name, value, found := strings.Cut(a, "=")
	if !found {
		w.result.Args = append(w.result.Args, a)
		return
	}
	if name == "--advertise-address" {
		w.addRewritten(a, name+"="+AdvertiseAddress(w.machine.Address).String(), reasonAdvertise)
		return
	}
	value = w.rewritePaths(value)
	if addressFlags[name] {
		value = w.rewriteAddresses(value)
	}
	if name == "--listen-client-urls" || name == "--listen-metrics-urls" {
		value = removeDuplicates(value)
	}
	if to := name + "=" + value; to != a {
		w.addRewritten(a, to, reasonPath+"; "+reasonAddress)
		return
	}
	w.result.Args = append(w.result.Args, a)
}

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
			rest, ok := strings.CutPrefix(part, m.Container)
			if !ok || rest != "" && rest[0] != '/' {
				continue
			}
			if allowlist.IsShared(m.Machine) {
				return prefix + part
			}
			return prefix + w.machine.Root + path.Clean(m.Machine) + rest
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
