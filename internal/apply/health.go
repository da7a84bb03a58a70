package apply

import (
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Health says whether a live object does what it is for, or else what it waits for. It follows the rules of
// kstatus, but a Job must be complete, and a Pod must not have failed. An object of a kind without known
// conditions is healthy as soon as it exists.
func Health(o *unstructured.Unstructured) (ok bool, message string) {
	defer func() {
		// kstatus trusts that objects are as their kind says; those of workload clusters need not be.
		if r := recover(); r != nil {
			ok, message = false, fmt.Sprintf("its health cannot be told: %v", r)
		}
	}()
	res, err := status.Compute(o)
	if err != nil {
		return false, fmt.Sprintf("its health cannot be told: %v", err)
	}
	if now := correctStatus(o, res.Status); now != status.CurrentStatus {
		return false, fmt.Sprintf("%s: %s", now, res.Message)
	}
	return true, ""
}

// correctStatus corrects what kstatus takes for current although it is not complete, or has failed.
func correctStatus(o *unstructured.Unstructured, was status.Status) status.Status {
	if was != status.CurrentStatus {
		return was
	}
	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Failed" {
			return status.FailedStatus
		}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); !suspended && !isJobComplete(o) {
			return status.InProgressStatus
		}
	}
	return was
}

func isJobComplete(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Complete" && m["status"] == "True"
	})
}
