package simulate

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotations with which a pod declares what happens to its simulated containers.
const (
	// ExitCodeAnnotation ends the pod's containers with a code: "1" all of them, "web=1,proxy=0" those of these names.
	ExitCodeAnnotation = "local.polder.dev/exit-code"
	// RunSecondsAnnotation is how long containers that end run before; without it, they end at once.
	RunSecondsAnnotation = "local.polder.dev/run-seconds"
	// MissingImagesAnnotation lists images, separated by commas, that cannot be pulled.
	MissingImagesAnnotation = "local.polder.dev/missing-images"
)

// exitCodes are the codes that a pod declares: for all its containers, and by name.
type exitCodes struct {
	all   *int32
	named map[string]int32
}

// parseExitCodes reads a pod's annotations. Its error is shown to whoever wrote them, as the pod's status.
func parseExitCodes(pod *corev1.Pod) (exitCodes, error) {
	out := exitCodes{named: map[string]int32{}}
	if v, ok := pod.Annotations[RunSecondsAnnotation]; ok {
		if n, err := strconv.ParseUint(v, 10, 31); err != nil || strconv.FormatUint(n, 10) != v {
			return out, fmt.Errorf("annotation %s: %q is no number of seconds", RunSecondsAnnotation, v)
		}
	}
	v, ok := pod.Annotations[ExitCodeAnnotation]
	if !ok {
		return out, nil
	}
	for part := range strings.SplitSeq(v, ",") {
		name, number, named := strings.Cut(part, "=")
		if !named {
			number = name
		}
		code, err := parseExitCode(strings.TrimSpace(number))
		if err != nil {
			return out, fmt.Errorf("annotation %s: %q is no exit code: give a number from 0 to 255, or container=number",
				ExitCodeAnnotation, part)
		}
		if !named {
			out.all = &code
			continue
		}
		name = strings.TrimSpace(name)
		if !hasContainer(pod, name) {
			return out, fmt.Errorf("annotation %s: the pod has no container %q", ExitCodeAnnotation, name)
		}
		out.named[name] = code
	}
	return out, nil
}

// parseExitCode reads a code that a process can end with.
func parseExitCode(number string) (int32, error) {
	code, err := strconv.ParseInt(number, 10, 32)
	if err == nil && (code < 0 || code > 255) {
		err = strconv.ErrRange
	}
	return int32(code), err
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for _, cs := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range cs {
			if c.Name == name {
				return true
			}
		}
	}
	return false
}

// isImageMissing says whether a simulated node would find no such image: the pod declares it, or it is one that
// Kubernetes' own tests count on not to exist. Registries that no name server knows are no sign: stacks for simulated
// nodes have them on purpose.
func isImageMissing(pod *corev1.Pod, image string) bool {
	for declared := range strings.SplitSeq(pod.Annotations[MissingImagesAnnotation], ",") {
		if strings.TrimSpace(declared) == image && image != "" {
			return true
		}
	}
	return image == "webserver:404" || strings.HasSuffix(image, ":non-existent") ||
		strings.HasSuffix(image, ":nonexistent")
}
