package kubeconfigrequest

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
	maxUsername   = 512 // bytes
	maxSecretName = 253 // bytes in the name of a Secret
)

// secretSuffix makes the name of a Secret from that of its request. Cluster API calls its own <cluster>-kubeconfig.
const secretSuffix = "-access"

// obstacle is why a request has no credentials.
type obstacle struct {
	reason       string
	message      string        // says what is wrong and what to do
	requeueAfter time.Duration // until it is checked again; 0 if it will not change
}

// newObstacle returns an obstacle with a formatted message.
func newObstacle(reason string, after time.Duration, format string, args ...any) *obstacle {
	return &obstacle{reason: reason, message: fmt.Sprintf(format, args...), requeueAfter: after}
}

// stopIfBlocked ends a run at an obstacle, if there is one, and reports it in the status.
func (s *scope) stopIfBlocked(o *obstacle) error {
	if o == nil {
		return nil
	}
	s.setNotReady(o)
	return reconcile.Wait(o.requeueAfter, "%s", o.message)
}

// newInvalidObstacle says that the request itself is wrong. It is not tried again, since its spec cannot change.
func newInvalidObstacle(format string, args ...any) *obstacle {
	return newObstacle(v1alpha1.ReasonRequestInvalid, 0, format, args...)
}

// validateRequest checks a request alone, without its cluster. Admission refuses it for the same reasons.
func validateRequest(o *v1alpha1.KubeconfigRequest) *obstacle {
	spec := o.Spec
	switch {
	case spec.Username == "":
		return newInvalidObstacle("spec.username is empty, so nobody knows who asked; make the request again")
	case len(spec.Username) > maxUsername:
		return newInvalidObstacle("spec.username has %d bytes, and may have %d", len(spec.Username), maxUsername)
	case hasControlCharacter(spec.Username):
		return newInvalidObstacle("spec.username has control characters, which no certificate may have")
	case groupForRole(spec.Role) == "":
		return newInvalidObstacle("spec.role is %q; write admin or viewer", spec.Role)
	case spec.ExpirationSeconds <= 0:
		return newInvalidObstacle("spec.expirationSeconds is %d; write how many seconds the access is needed",
			spec.ExpirationSeconds)
	case spec.CertificateRequest == "" && len(secretName(o)) > maxSecretName:
		return newInvalidObstacle(
			"metadata.name has %d bytes, and may have %d without a certificateRequest, since a Secret is called by it",
			len(o.Name), maxSecretName-len(secretSuffix),
		)
	}
	if spec.CertificateRequest == "" {
		return nil
	}
	if _, err := parseCSRPublicKey(spec.CertificateRequest); err != nil {
		return newInvalidObstacle("spec.certificateRequest: %v", err)
	}
	return nil
}

// hasControlCharacter reports whether a text would break the line in a log or on a screen.
func hasControlCharacter(s string) bool {
	for _, c := range s {
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return true
		}
	}
	return false
}

// secretName returns the name of the Secret of a request.
func secretName(o client.Object) string { return o.GetName() + secretSuffix }
