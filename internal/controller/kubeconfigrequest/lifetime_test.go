package kubeconfigrequest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestDeletionTime(t *testing.T) {
	created := at.Truncate(time.Second)
	until := ptr.To(metav1.NewTime(created.Add(time.Hour)))
	for title, c := range map[string]struct {
		status v1alpha1.KubeconfigRequestStatus
		want   time.Time
	}{
		"no answer":             {v1alpha1.KubeconfigRequestStatus{}, created.Add(time.Hour)},
		"a certificate":         {v1alpha1.KubeconfigRequestStatus{Certificate: "c", ExpirationTime: until}, until.Time},
		"a Secret":              {v1alpha1.KubeconfigRequestStatus{SecretName: "s", ExpirationTime: until}, until.Time},
		"half an answer":        {v1alpha1.KubeconfigRequestStatus{ExpirationTime: until}, created.Add(time.Hour)},
		"the other half of one": {v1alpha1.KubeconfigRequestStatus{SecretName: "s"}, created.Add(time.Hour)},
	} {
		t.Run(title, func(t *testing.T) {
			o := newRequest()
			o.Status = c.status
			if got := deletionTime(o); !got.Equal(c.want) {
				t.Errorf("end %s, want %s", got, c.want)
			}
		})
	}
}

func TestRequeueDelay(t *testing.T) {
	for title, c := range map[string]struct{ asked, left, want time.Duration }{
		"what was asked for":         {time.Minute, time.Hour, time.Minute},
		"never is at the end":        {0, time.Hour, time.Hour},
		"not after the end":          {time.Hour, time.Minute, time.Minute},
		"at once if the end is past": {time.Hour, -time.Minute, time.Millisecond},
	} {
		t.Run(title, func(t *testing.T) {
			if got := requeueDelay(c.asked, c.left); got != c.want {
				t.Errorf("next %s, want %s", got, c.want)
			}
		})
	}
}
