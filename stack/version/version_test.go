package version_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/version"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]version.Version{
		"v1":              {Major: 1},
		"v0":              {},
		"v12":             {Major: 12},
		"v0-sha.abc1234":  {Word: "sha", ID: "abc1234"},
		"v0-sha-abc1234":  {Word: "sha", ID: "abc1234"},
		"v0-git.8271ca4":  {Word: "git", ID: "8271ca4"},
		"v0-ttl.17623000": {Word: "ttl", ID: "17623000"},
		"v2-beta.10":      {Major: 2, Word: "beta", ID: "10"},
		"v2-my_word.A":    {Major: 2, Word: "my_word", ID: "A"},
	} {
		got, err := version.Parse(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
		if got.String() != strings.Replace(in, "-"+want.ID, "."+want.ID, 1) && want.ID != "" {
			t.Errorf("%s is written %s", in, got)
		}
	}
	for _, in := range []string{
		"", "1", "v", "v-1", "v1.2.3", "v01", "V1", "v1-", "v1-beta", "v1-beta.", "v1-.1", "v1-beta.1.2", "v1-beta-1-2", "v0.custom-pr123",
		"v0-custom-pr-123", "v1 ", " v1", "v1\n", "v99999999999999999999", "v1-bêta.1", "v1-sha." + strings.Repeat("a", 200), "v1\x00",
	} {
		if v, err := version.Parse(in); err == nil {
			t.Errorf("%q is taken for %+v", in, v)
		} else if len(err.Error()) > 400 {
			t.Errorf("%q: a sentence of %d bytes", in, len(err.Error()))
		}
	}
}

func TestCompare(t *testing.T) {
	sorted := []string{
		"v0-alpha.3", "v0-beta.2", "v0-beta.9", "v0-beta.10", "v0-beta.10a", "v0-beta.a", "v0-git.0", "v0-sha.abc", "v0-sha.abd", "v0",
		"v1-beta.1", "v1-beta.99999999999999999999998", "v1-beta.99999999999999999999999", "v1", "v2", "v9", "v10",
	}
	var vs []version.Version
	for _, s := range sorted {
		v, err := version.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	for i, a := range vs {
		for j, b := range vs {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := version.Compare(a, b); got != want {
				t.Errorf("%s and %s compare as %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestNumbersWithZerosDiffer(t *testing.T) {
	a, b := version.Version{Word: "beta", ID: "1"}, version.Version{Word: "beta", ID: "01"}
	if version.Compare(a, b) == 0 || version.Compare(a, b) != -version.Compare(b, a) {
		t.Error("different versions must have an order")
	}
}

func TestText(t *testing.T) {
	var v struct{ V version.Version }
	if err := json.Unmarshal([]byte(`{"V":"v0-sha-abc"}`), &v); err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(v); err != nil || string(b) != `{"V":"v0-sha.abc"}` {
		t.Errorf("%s, %v", b, err)
	}
	if err := json.Unmarshal([]byte(`{"V":"three"}`), &v); err == nil {
		t.Error("three is no version")
	}
}

func TestKubernetes(t *testing.T) {
	for in, want := range map[string]string{"1.36": "1.36", "v1.36": "1.36", "1.36.3": "v1.36.3", "v1.36.0": "v1.36.0", "v10.0.12": "v10.0.12"} {
		if k, err := version.ParseKubernetes(in); err != nil || k.String() != want {
			t.Errorf("%s: %s, %v", in, k, err)
		}
	}
	for _, in := range []string{"", "1", "v1", "1.36.", "1.36.3.4", "1.036", "1-36", "v1.36.3-rc.1", "1.99999999999999999999"} {
		if k, err := version.ParseKubernetes(in); err == nil {
			t.Errorf("%q is taken for %s", in, k)
		}
	}
	sorted := []string{"1.9", "1.35.9", "1.36", "1.36.0", "1.36.10", "2.0"}
	ks := make([]version.Kubernetes, len(sorted))
	for i, s := range sorted {
		ks[i], _ = version.ParseKubernetes(s)
	}
	if !slices.IsSortedFunc(ks, version.CompareKubernetes) {
		t.Error("not in order:", ks)
	}
}

func TestReleaseName(t *testing.T) {
	for in, want := range map[string][3]string{ // tag, class, line
		"docker-ferrol-1-27-v1":             {"docker-ferrol-1-27-v1", "docker-ferrol-1-27-v1", "docker-ferrol-1-27"},
		"docker-ferrol-1-27-v0-sha-hipstsw": {"docker-ferrol-1-27-v0-sha-hipstsw", "docker-ferrol-1-27-v0-sha.hipstsw", "docker-ferrol-1-27"},
		"docker-ferrol-1-27-v0-sha.hipstsw": {"docker-ferrol-1-27-v0-sha-hipstsw", "docker-ferrol-1-27-v0-sha.hipstsw", "docker-ferrol-1-27"},
		"openstack-my-stack-1-34-v1":        {"openstack-my-stack-1-34-v1", "openstack-my-stack-1-34-v1", "openstack-my-stack-1-34"},
		"local-a-1-2-1-36-v3":               {"local-a-1-2-1-36-v3", "local-a-1-2-1-36-v3", "local-a-1-2-1-36"},
	} {
		r, err := version.ParseReleaseName(in)
		if err != nil || r.Tag() != want[0] || r.Class() != want[1] || r.ReleaseLine.String() != want[2] {
			t.Errorf("%s: %s, %s, %s, %v", in, r.Tag(), r.Class(), r.ReleaseLine, err)
		}
		if err := r.Check(); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{"", "openstack-scs-v5", "openstack-csp-helper-v0.3.0", "openstack-scs-1-29-v2-test", "scs-1-29-v2", "-scs-1-29-v2", "a-b-1-29-",
		"a-B-1-29-v1", "a--b-1-29-v1", "a-b-1-29-v01", "a-b-01-29-v1"} {
		if r, err := version.ParseReleaseName(in); err == nil {
			t.Errorf("%q is taken for %+v", in, r)
		}
	}
	for _, l := range []version.ReleaseLine{{Provider: "a-b", Name: "c"}, {Provider: "", Name: "c"}, {Provider: "a", Name: ""}, {Provider: "a", Name: "-"},
		{Provider: "a", Name: "B"}, {Provider: "a", Name: "b--c"}} {
		if l.Check() == nil {
			t.Errorf("%+v is taken for a line", l)
		}
	}
}

// What parses is written in two spellings that parse to the same, and has an order.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"v1", "v0-sha.abc1234", "v0-sha-abc1234", "v1-beta.10", "docker-ferrol-1-27-v0-sha-hipstsw", "v1.36.3", "v1-", "v0.custom-pr123"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := version.Parse(s); err == nil {
			for _, spelling := range []string{v.String(), v.Dashed()} {
				if again, err := version.Parse(spelling); err != nil || again != v || version.Compare(v, again) != 0 {
					t.Errorf("%q: %q is read as %+v, %v", s, spelling, again, err)
				}
			}
		}
		if r, err := version.ParseReleaseName(s); err == nil {
			for _, spelling := range []string{r.Tag(), r.Class()} {
				if again, err := version.ParseReleaseName(spelling); err != nil || again != r || version.CompareReleaseNames(r, again) != 0 {
					t.Errorf("%q: %q is read as %+v, %v", s, spelling, again, err)
				}
			}
			if err := r.Check(); err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
		if k, err := version.ParseKubernetes(s); err == nil {
			if again, err := version.ParseKubernetes(k.String()); err != nil || again != k {
				t.Errorf("%q: %q is read as %+v, %v", s, k, again, err)
			}
		}
	})
}
