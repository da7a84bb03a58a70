package simulate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is whether a container exits once it runs, and with which code.
type outcome struct {
	exits    bool
	exitCode int32
}

// outcomeOf returns the outcome of a container: what the pod declares, else what its command says, else what is usual
// for its kind: init containers and containers of Jobs succeed, all others run on.
func outcomeOf(pod *corev1.Pod, c *corev1.Container, declared exitCodes, isInit bool) outcome {
	if code, ok := declared.named[c.Name]; ok {
		return outcome{exits: true, exitCode: code}
	}
	if declared.all != nil && !isInit {
		return outcome{exits: true, exitCode: *declared.all}
	}
	if o, known := outcomeOfCommand(pod, c); known {
		return o
	}
	ofJob := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
	return outcome{exits: isInit || ofJob}
}

var (
	// exitScript matches a script that does nothing but end.
	exitScript = regexp.MustCompile(`^exit ([0-9]{1,3})$`)
	// indexedExitScript matches a script that ends by the index of an indexed Job; Kubernetes' own tests have it.
	indexedExitScript = regexp.MustCompile(
		`^if \[ \$\(expr \$\{JOB_COMPLETION_INDEX\} % ([1-9][0-9]?)\) -ne 0 \]; then exit ([0-9]{1,3}) else exit ([0-9]{1,3}) fi$`,
	)
	// pauseImage matches the image that only sleeps.
	pauseImage = regexp.MustCompile(`^(.+/)?pause(:[^/]*)?(@.*)?$`)
)

// outcomeOfCommand knows the few commands that cannot be mistaken.
func outcomeOfCommand(pod *corev1.Pod, c *corev1.Container) (outcome, bool) {
	words := slices.Concat(c.Command, c.Args)
	if len(words) == 0 {
		return outcome{}, pauseImage.MatchString(c.Image)
	}
	if len(c.Command) == 0 {
		return outcome{}, false // what the image does with these arguments is its own affair
	}
	switch program := strings.TrimPrefix(words[0], "/bin/"); {
	case len(words) == 1 && program == "true":
		return outcome{exits: true}, true
	case len(words) == 1 && program == "false":
		return outcome{exits: true, exitCode: 1}, true
	case len(words) == 2 && program == "sleep":
		_, err := strconv.ParseUint(words[1], 10, 31)
		return outcome{exits: err == nil}, err == nil || words[1] == "infinity"
	case len(words) == 3 && program == "sh" && words[1] == "-c":
		return outcomeOfScript(pod, strings.Join(strings.Fields(words[2]), " "))
	}
	return outcome{}, false
}

func outcomeOfScript(pod *corev1.Pod, script string) (outcome, bool) {
	if m := exitScript.FindStringSubmatch(script); m != nil {
		return exitOutcome(m[1])
	}
	m := indexedExitScript.FindStringSubmatch(script)
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if m == nil || err != nil {
		return outcome{}, false
	}
	if by, err := strconv.Atoi(m[1]); err != nil || index%by != 0 {
		return exitOutcome(m[2])
	}
	return exitOutcome(m[3])
}

// exitOutcome is an exit with a code; one that is too large is not guessed at.
func exitOutcome(number string) (outcome, bool) {
	code, err := parseExitCode(number)
	if err != nil {
		return outcome{}, false
	}
	return outcome{exits: true, exitCode: code}, true
}
