package clusterstack

import (
	"testing"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func TestMessages(t *testing.T) {
	has := func(change func(*sourceState), versions ...string) sourceState {
		l := newSourceState(t, versions...)
		change(&l)
		return l
	}
	for name, c := range map[string]struct{ got, want string }{
		"some": {has(func(*sourceState) {}, "v1", "v2").describeReleases(newStack()), "directory here has 2 releases of docker-ferrol-1-27 in channel stable"},
		"one":  {has(func(*sourceState) {}, "v1").describeReleases(newStack()), "directory here has 1 release of docker-ferrol-1-27 in channel stable"},
		"left out": {has(func(l *sourceState) { l.rejected = []string{"a", "b", "c", "d", "e", "f"} }, "v1").describeReleases(newStack()),
			"directory here has 1 release of docker-ferrol-1-27 in channel stable; left out, 6: a; b; c; d; e"},
		"none": {has(func(*sourceState) {}).describeNoReleases(newStack()), "directory here has no release of docker-ferrol-1-27 in channel stable"},
		"none of the channel": {
			has(func(*sourceState) {}).describeNoReleases(newStack(func(o *csv1.ClusterStack) { o.Spec.Channel = csv1.ChannelCustom })),
			"directory here has no release of docker-ferrol-1-27 in channel custom",
		},
		"others": {
			has(func(l *sourceState) {
				for _, line := range []string{"z", "a", "z", "b", "c", "d", "e"} {
					l.addOtherLine(line)
				}
			}).describeNoReleases(newStack()), "directory here has no release of docker-ferrol-1-27 in channel stable, but of a, b, c, d, z",
		},
		"only broken ones": {
			has(func(l *sourceState) { l.rejected, l.otherLines = []string{"x is left out: cut"}, []string{"y"} }).describeNoReleases(newStack()),
			"directory here has no release of docker-ferrol-1-27 in channel stable that is sound: x is left out: cut",
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
