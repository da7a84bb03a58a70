package kubelet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// manifest is one static pod as it was written.
type manifest struct {
	file string
	raw  []byte
	pod  *corev1.Pod
}

// errUnfinished means that a manifest is just being written; it is met again when it is whole.
var errUnfinished = errors.New("the manifest is empty")

func (p *pods) dir() string { return p.cfg.Dir.Files("/etc/kubernetes/manifests") }

// read returns the manifests by the names of their pods, and by their own names the files that
// are none, and why.
func (p *pods) read() (whole map[string]manifest, broken map[string]error, err error) {
	entries, err := os.ReadDir(p.dir())
	if err != nil {
		return nil, nil, err
	}
	whole, broken = map[string]manifest{}, map[string]error{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(p.dir(), e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		pod := &corev1.Pod{}
		if err == nil {
			err = parse(b, pod)
		}
		if err != nil {
			broken[e.Name()] = err
			continue
		}
		whole[pod.Name] = manifest{file: e.Name(), raw: b, pod: pod}
	}
	return whole, broken, nil
}

func parse(b []byte, pod *corev1.Pod) error {
	if len(b) == 0 {
		return errUnfinished
	}
	if err := yaml.Unmarshal(b, pod); err != nil {
		return err
	}
	// The name becomes that of a log file, too.
	if wrong := validation.IsDNS1123Subdomain(pod.Name); len(wrong) > 0 {
		return fmt.Errorf("the name of the pod, %q, is none that Kubernetes takes", pod.Name)
	}
	if len(pod.Spec.Containers) == 0 {
		return errors.New("the pod has no container")
	}
	return nil
}
