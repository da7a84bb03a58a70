package access

import (
	"fmt"
	"time"
	"unicode"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// Limits of a request.
const (
	maxUsername = 512 // bytes
	maxName     = 253 // bytes in the name of a Secret
)

// answerSuffix makes the name of a Secret of that of its request. Cluster API calls its own <cluster>-kubeconfig.
const answerSuffix = "-access"

// obstacle is why a request has no answer.
type obstacle struct {
	reason  string
	message string        // says what is the matter and what to do
	after   time.Duration // until it is looked at again; 0: it will not change
}

func hurdle(reason string, after time.Duration, format string, args ...any) *obstacle {
	return &obstacle{reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// stop ends a run at an obstacle, if there is one.
func (s *scope) stop(o *obstacle) error {
	if o == nil {
		return nil
	}
	s.refuse(o)
	return reconcile.Wait(o.after, "%s", o.message)
}

func invalid(format string, args ...any) *obstacle {
	return hurdle(v1alpha1.ReasonRequestInvalid, 0, format, args...)
}

// wrong finds what is wrong with a request, whatever the world is like. Admission refuses it for the same.
func wrong(o *v1alpha1.KubeconfigRequest) *obstacle {
	spec := o.Spec
	switch {
	case spec.Username == "":
		return invalid("spec.username is empty, so nobody knows who asked; make the request again")
	case len(spec.Username) > maxUsername:
		return invalid("spec.username has %d bytes, and may have %d", len(spec.Username), maxUsername)
	case containsControl(spec.Username):
		return invalid("spec.username has control characters, which no certificate may have")
	case group(spec.Role) == "":
		return invalid("spec.role is %q; write admin or viewer", spec.Role)
	case spec.ExpirationSeconds <= 0:
		return invalid("spec.expirationSeconds is %d; write how many seconds the access is needed", spec.ExpirationSeconds)
	case spec.CertificateRequest == "" && len(secretName(o)) > maxName:
		return invalid("metadata.name has %d bytes, and may have %d without a certificateRequest, since a Secret is called by it", len(o.Name), maxName-len(answerSuffix))
	}
	if spec.CertificateRequest == "" {
		return nil
	}
	if _, err := publicKey(spec.CertificateRequest); err != nil {
		return invalid("spec.certificateRequest: %v", err)
	}
	return nil
}

// containsControl finds what would change the line in a log or on a screen.
func containsControl(s string) bool {
	for _, c := range s {
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return true
		}
	}
	return false
}

func secretName(o client.Object) string { return o.GetName() + answerSuffix }
