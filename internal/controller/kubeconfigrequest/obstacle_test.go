package kubeconfigrequest

import (
	"crypto/elliptic"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestValidateRequest(t *testing.T) {
	csr := newCSR(t, ecKey(t, elliptic.P256()), greedy)
	long := strings.Repeat("a", 247)
	for title, c := range map[string]struct {
		change func(*v1alpha1.KubeconfigRequest)
		want   string // empty if nothing is wrong
	}{
		"for a Secret":               {func(*v1alpha1.KubeconfigRequest) {}, ""},
		"for a key":                  {func(o *v1alpha1.KubeconfigRequest) { o.Spec.CertificateRequest = csr }, ""},
		"nobody":                     {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "" }, "nobody knows who asked"},
		"the longest name of a user": {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = strings.Repeat("ä", 256) }, ""},
		"one byte more":              {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = strings.Repeat("ä", 256) + "a" }, "513 bytes, and may have 512"},
		"a line break in a user":     {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "a\nb" }, "control characters"},
		"an escape in a user":        {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "a\x1b[2Jb" }, "control characters"},
		"no text as a user":          {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "a\xff" }, "control characters"},
		"no role":                    {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Role = "" }, "write admin or viewer"},
		"another role":               {func(o *v1alpha1.KubeconfigRequest) { o.Spec.Role = "system:masters" }, "write admin or viewer"},
		"no time":                    {func(o *v1alpha1.KubeconfigRequest) { o.Spec.ExpirationSeconds = 0 }, "expirationSeconds"},
		"the longest name":           {func(o *v1alpha1.KubeconfigRequest) { o.Name = long[1:] }, ""},
		"a name too long":            {func(o *v1alpha1.KubeconfigRequest) { o.Name = long }, "247 bytes, and may have 246"},
		"a long name for a key":      {func(o *v1alpha1.KubeconfigRequest) { o.Name, o.Spec.CertificateRequest = long, csr }, ""},
		"no signing request":         {func(o *v1alpha1.KubeconfigRequest) { o.Spec.CertificateRequest = "hello" }, "spec.certificateRequest: it must be one block"},
	} {
		t.Run(title, func(t *testing.T) {
			got := validateRequest(newRequest(c.change))
			if (got == nil) != (c.want == "") {
				t.Fatalf("obstacle %+v, want %q", got, c.want)
			}
			if got != nil && (got.reason != v1alpha1.ReasonRequestInvalid || !strings.Contains(got.message, c.want) || got.requeueAfter != 0) {
				t.Errorf("obstacle %+v, want %q", got, c.want)
			}
		})
	}
}
