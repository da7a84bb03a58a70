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

// manifest is one static pod as it was written to disk.
type manifest struct {
	file string
	raw  []byte
	pod  *corev1.Pod
}

// errEmptyManifest means that a manifest is just being written; it is met again when it is whole.
var errEmptyManifest = errors.New("the manifest is empty")

func (p *staticPods) manifestDir() string { return p.cfg.Dir.RootFS("/etc/kubernetes/manifests") }

// readManifests returns the valid manifests by the names of their pods, and by file name why others are invalid.
func (p *staticPods) readManifests() (valid map[string]manifest, invalid map[string]error, err error) {
	entries, err := os.ReadDir(p.manifestDir())
	if err != nil {
		return nil, nil, err
	}
	valid, invalid = map[string]manifest{}, map[string]error{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(p.manifestDir(), e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		pod := &corev1.Pod{}
		if err == nil {
			err = parseManifest(b, pod)
		}
		if err != nil {
			invalid[e.Name()] = err
			continue
		}
		valid[pod.Name] = manifest{file: e.Name(), raw: b, pod: pod}
	}
	return valid, invalid, nil
}

func parseManifest(b []byte, pod *corev1.Pod) error {
	if len(b) == 0 {
		return errEmptyManifest
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
