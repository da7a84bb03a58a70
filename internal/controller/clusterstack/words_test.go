package clusterstack

import (
	"testing"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func TestWords(t *testing.T) {
	has := func(change func(*look), versions ...string) look {
		l := seen(t, versions...)
		change(&l)
		return l
	}
	for name, c := range map[string]struct{ got, want string }{
		"some":     {has(func(*look) {}, "v1", "v2").told(newStack()), "directory here has 2 releases of docker-ferrol-1-27 in channel stable"},
		"one":      {has(func(*look) {}, "v1").told(newStack()), "directory here has 1 release of docker-ferrol-1-27 in channel stable"},
		"left out": {has(func(l *look) { l.leftOut = []string{"a", "b", "c", "d", "e", "f"} }, "v1").told(newStack()), "directory here has 1 release of docker-ferrol-1-27 in channel stable; left out, 6: a; b; c; d; e"},
		"none":     {has(func(*look) {}).none(newStack()), "directory here has no release of docker-ferrol-1-27 in channel stable"},
		"none of the channel": {
			has(func(*look) {}).none(newStack(func(o *csv1.ClusterStack) { o.Spec.Channel = csv1.ChannelCustom })), "directory here has no release of docker-ferrol-1-27 in channel custom",
		},
		"others": {
			has(func(l *look) {
				for _, line := range []string{"z", "a", "z", "b", "c", "d", "e"} {
					l.notice(line)
				}
			}).none(newStack()), "directory here has no release of docker-ferrol-1-27 in channel stable, but of a, b, c, d, z",
		},
		"only broken ones": {
			has(func(l *look) { l.leftOut, l.others = []string{"x is left out: cut"}, []string{"y"} }).none(newStack()),
			"directory here has no release of docker-ferrol-1-27 in channel stable that is sound: x is left out: cut",
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
