package kubeversion

import (
	"strings"
	"testing"
)

func TestEmulatedVersion(t *testing.T) {
	r, err := NewRange("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[string]string{"v1.36.3": "", "v1.36.9": "", "v1.36.0-rc.1": "", "v1.35.7": "1.35", "v1.33.0": "1.33"} {
		if got, err := r.EmulatedVersion(v); got != want || err != nil {
			t.Errorf("Emulate(%s) = %q, %v; want %q", v, got, err, want)
		}
	}
	for _, v := range []string{"v1.32.9", "v1.37.0", "v2.36.0"} {
		if _, err := r.EmulatedVersion(v); err == nil || !strings.Contains(err.Error(), "v1.33 to v1.36") {
			t.Errorf("Emulate(%s): %v; want what is possible", v, err)
		}
	}
	if _, err := r.EmulatedVersion("latest"); err == nil {
		t.Error("a word is taken for a version")
	}
	if _, err := NewRange("v0.0.0-master+$Format:%H$"); err == nil {
		t.Error("a build that does not know its Kubernetes is accepted")
	}
}
