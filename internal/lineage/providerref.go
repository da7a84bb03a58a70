package lineage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// ProviderRefIgnored is the condition of a stack or a release with a providerRef, which the operator that came before
// acted on.
func ProviderRefIgnored() metav1.Condition {
	return metav1.Condition{
		Type: csv1.ConditionProviderRefIgnored, Status: metav1.ConditionTrue, Reason: csv1.ReasonNotActedOn,
		Message: "spec.providerRef is accepted and not acted on: releases need no object of a provider here",
	}
}
