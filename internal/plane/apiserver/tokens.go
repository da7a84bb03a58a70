package apiserver

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// boundObjectGetter looks up the objects that service-account tokens can be bound to. In this plane these are
// service accounts and secrets; a token bound to a pod or a node is bound to nothing.
type boundObjectGetter struct {
	secrets         corelisters.SecretLister
	serviceAccounts corelisters.ServiceAccountLister
}

var _ serviceaccount.ServiceAccountTokenGetter = boundObjectGetter{}

func newTokenGetter(f informers.SharedInformerFactory) serviceaccount.ServiceAccountTokenGetter {
	return boundObjectGetter{
		secrets: f.Core().V1().Secrets().Lister(), serviceAccounts: f.Core().V1().ServiceAccounts().Lister(),
	}
}

func (b boundObjectGetter) GetServiceAccount(_ context.Context, namespace,
	name string) (*corev1.ServiceAccount, error) {
	return b.serviceAccounts.ServiceAccounts(namespace).Get(name)
}

func (b boundObjectGetter) GetSecret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return b.secrets.Secrets(namespace).Get(name)
}

func (b boundObjectGetter) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (b boundObjectGetter) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

func (b boundObjectGetter) GetValidatingWebhookConfiguration(_ context.Context,
	name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return nil, apierrors.NewNotFound(admissionregistrationv1.Resource("validatingwebhookconfigurations"), name)
}

func (b boundObjectGetter) GetMutatingWebhookConfiguration(_ context.Context,
	name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return nil, apierrors.NewNotFound(admissionregistrationv1.Resource("mutatingwebhookconfigurations"), name)
}
