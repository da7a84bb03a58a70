package simulate

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Only what cannot be mistaken is known; all else is left to the kind of the pod.
func TestCommandsThatAreKnown(t *testing.T) {
	byIndex := []string{"sh", "-c", "\n\tif [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then\n\t\texit 1\n\telse\n\t\texit 0\n\tfi\n\t"}
	for _, tc := range []struct {
		image   string
		command []string
		args    []string
		index   string
		want    outcome
		known   bool
	}{
		{command: []string{"true"}, want: outcome{exits: true}, known: true},
		{command: []string{"/bin/false"}, want: outcome{exits: true, exitCode: 1}, known: true},
		{command: []string{"/bin/sh", "-c", "exit 42"}, want: outcome{exits: true, exitCode: 42}, known: true},
		{command: []string{"/bin/sh", "-c"}, args: []string{" exit 0\n"}, want: outcome{exits: true}, known: true},
		{command: byIndex, index: "3", want: outcome{exits: true, exitCode: 1}, known: true},
		{command: byIndex, index: "4", want: outcome{exits: true}, known: true},
		{command: byIndex},
		{command: []string{"sleep", "5"}, want: outcome{exits: true}, known: true},
		{command: []string{"sleep", "infinity"}, known: true},
		{command: []string{"sleep", "5m"}},
		{image: "registry.k8s.io/pause:3.10", known: true},
		{image: "localhost:5000/pause", known: true},
		{image: "registry.k8s.io/pause:3.10", command: []string{"true"}, want: outcome{exits: true}, known: true},
		{image: "example.org/pause/web"},
		{image: "example.org/web"},
		{args: []string{"true"}},
		{command: []string{"true", "story"}},
		{command: []string{"sh", "-c", "exit 256"}},
		{command: []string{"sh", "-c", "test -e /x; exit 0"}},
		{command: []string{"sh", "-c", "exit $(( $RANDOM / 16384 ))"}},
	} {
		t.Run(strings.Join(append(tc.command, tc.args...), " ")+tc.image+tc.index, func(t *testing.T) {
			pod := &corev1.Pod{}
			if tc.index != "" {
				pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: tc.index}
			}
			got, known := outcomeOfCommand(pod, &corev1.Container{Image: tc.image, Command: tc.command, Args: tc.args})
			if got != tc.want || known != tc.known {
				t.Errorf("%+v, %v; want %+v, %v", got, known, tc.want, tc.known)
			}
		})
	}
}

func TestImagesThatAreMissing(t *testing.T) {
	for image, want := range map[string]bool{
		"webserver:404": true, "foo:non-existent": true, "gcr.io/x/y:nonexistent": true, "registry.invalid/web:1": false, "registry.invalid:5000/web": false,
		"example.org/web:404": false, "example.org/registry.invalid/web": false, "nonexistent": false, "invalid/web": false, "a": false, "": false,
	} {
		if got := isImageMissing(&corev1.Pod{}, image); got != want {
			t.Errorf("%q: %v", image, got)
		}
	}
}
