package apply

import (
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, spec: {replicas: 1}, status: "
	for _, tc := range []struct{ name, object, want string }{
		{"a config map", named("v1", "ConfigMap", "x"), ""},
		{"a kind nobody knows", named("example.com/v1", "Widget", "x"), ""},
		{"a new deployment", named("apps/v1", "Deployment", "x"), "InProgress: Replicas: 0/1"},
		{"a deployment not observed", deployment + "{observedGeneration: 1}}", "InProgress: Deployment generation is 2"},
		{"a deployment that works", deployment +
			`{observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`, ""},
		{"a deployment that does not", deployment + `{observedGeneration: 2, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			"Failed: Progress deadline exceeded"},
		{"a widget not ready", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}, status: {conditions: [{type: Ready, status: "False", message: why}]}}`, "InProgress: why"},
		{"an object on its way out", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, deletionTimestamp: '2026-01-01T00:00:00Z'}}", "Terminating"},
		{"a job that runs", "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {startTime: now, active: 1}}", "InProgress: Job in progress"},
		{"a job that is done", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {startTime: now, conditions: [{type: Complete, status: "True"}]}}`,
			""},
		{"a job that failed", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {startTime: now, conditions: [{type: Failed, status: "True"}]}}`,
			"Failed: Job Failed"},
		{"a job that is suspended", "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {suspend: true}, status: {startTime: now}}", ""},
		{"a pod that failed", "{apiVersion: v1, kind: Pod, metadata: {name: x}, status: {phase: Failed}}", "Failed: Pod has completed, but not successfully"},
		{"a pod that is done", "{apiVersion: v1, kind: Pod, metadata: {name: x}, status: {phase: Succeeded}}", ""},
		{"conditions that are none", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}, status: {conditions: 7}}", "its health cannot be told"},
		{"a pod of a strange API server", "{apiVersion: v1, kind: Pod, metadata: {name: x}, status: {phase: Running, containerStatuses: [x]}}",
			"its health cannot be told"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ok, message := Health(parse(t, tc.object)[0])
			if ok != (tc.want == "") || !strings.HasPrefix(message, tc.want) || ok && message != "" {
				t.Errorf("%v, %q", ok, message)
			}
		})
	}
}
