package kubeconfigrequest

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// stalledReasons are the reasons that last until somebody acts. With all others something is under way.
var stalledReasons = map[string]bool{
	v1alpha1.ReasonRequestInvalid: true, v1alpha1.ReasonClusterMissing: true, v1alpha1.ReasonNotOurs: true,
}

// setNotReady sets Ready to false with an obstacle, and either Reconciling or Stalled, as kstatus expects it.
func (s *scope) setNotReady(o *obstacle) {
	is, not := v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	if stalledReasons[o.reason] {
		is, not = not, is
	}
	message := reconcile.TruncateMessage(o.message)
	s.conditions.SetFalse(v1alpha1.ConditionReady, o.reason, message)
	s.conditions.Set(metav1.Condition{Type: is, Status: metav1.ConditionTrue, Reason: o.reason, Message: message})
	s.conditions.Remove(not)
}

// summarize sets Ready to true if credentials were issued.
func (s *scope) summarize() {
	o := s.request
	if !isAnswered(o) {
		return
	}
	where := "the certificate is in status.certificate"
	if o.Status.SecretName != "" {
		where = "the kubeconfig is in Secret " + o.Status.SecretName
	}
	s.conditions.SetTrue(v1alpha1.ConditionReady, fmt.Sprintf("%s is %s of cluster %s until %s; %s",
		UserPrefix+o.Spec.Username, o.Spec.Role, o.Spec.ClusterName, formatTime(o.Status.ExpirationTime.Time), where))
	s.conditions.Remove(v1alpha1.ConditionReconciling)
	s.conditions.Remove(v1alpha1.ConditionStalled)
}

// recordIssuedEvents records on the request and on the cluster who got access. The checksum is how the cluster's own
// audit log names the certificate.
func (r *Reconciler) recordIssuedEvents(s *scope, c *x509.Certificate) {
	note := fmt.Sprintf("a certificate for %s as %s of cluster %s, valid until %s, was signed for request %s: X509SHA256=%x",
		c.Subject.CommonName, s.credentials.role, s.credentials.cluster, formatTime(c.NotAfter), s.request.Name,
		sha256.Sum256(c.Raw))
	r.Events.Eventf(s.request, s.workloadCluster, "Normal", v1alpha1.ReasonIssued, "Issue", "%s", note)
	r.Events.Eventf(s.workloadCluster, s.request, "Normal", v1alpha1.ReasonIssued, "Issue", "%s", note)
}
