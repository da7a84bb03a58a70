// Command capimanifests takes Cluster API's CRDs, webhook configurations and roles out of the
// downloaded module, for polderd to embed. It does for them what the module's kustomizations
// do as far as it matters here: labels and name prefixes.
//
//	capimanifests MODULE_DIR VERSION OUTPUT_DIR
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// managers are the three programs of Cluster API, by the folder they live in.
var managers = map[string]string{
	"core": "core", "bootstrap": "bootstrap/kubeadm", "control-plane": "controlplane/kubeadm",
}

type object = map[string]any

type index struct {
	ClusterAPI string            `json:"clusterAPI"`
	CRDs       []crd             `json:"crds"`
	Mutating   []object          `json:"mutating"`
	Validating []object          `json:"validating"`
	Roles      map[string]object `json:"roles"`
}

type crd struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

type kustomization struct {
	NamePrefix string `json:"namePrefix"`
	Labels     []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: capimanifests MODULE_DIR VERSION OUTPUT_DIR")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "capimanifests:", err)
		os.Exit(1)
	}
}

func generate(module, version, out string) error {
	// A run that fails leaves what was there before.
	tmp := out + ".new"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	i := index{ClusterAPI: version, Roles: map[string]object{}}
	for _, name := range slices.Sorted(maps.Keys(managers)) {
		if err := i.addManager(name, filepath.Join(module, managers[name], "config"), tmp); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(i.CRDs) == 0 || len(i.Mutating) == 0 || len(i.Validating) == 0 {
		return fmt.Errorf("found no CRDs or webhooks in %s; has its layout changed?", module)
	}
	b, err := json.MarshalIndent(i, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "index.json"), b, 0o644); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(out), os.Rename(tmp, out))
}

func (i *index) addManager(manager, config, out string) error {
	whole, err := readKustomization(filepath.Join(config, "default", "kustomization.yaml"))
	if err != nil {
		return err
	}
	crds, err := readKustomization(filepath.Join(config, "crd", "kustomization.yaml"))
	if err != nil {
		return err
	}
	if err := i.addCRDs(filepath.Join(config, "crd", "bases"), out, append(whole.Labels, crds.Labels...)); err != nil {
		return err
	}
	if err := i.addWebhooks(filepath.Join(config, "webhook", "manifests.yaml"), whole.NamePrefix); err != nil {
		return err
	}
	roles, err := readObjects(filepath.Join(config, "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	for _, r := range roles {
		if r["kind"] == "ClusterRole" {
			addNamePrefix(r, whole.NamePrefix)
			i.Roles[manager] = r
		}
	}
	if i.Roles[manager] == nil {
		return errors.New("no ClusterRole")
	}
	return nil
}

func (i *index) addCRDs(bases, out string, labels []struct {
	Pairs map[string]string `json:"pairs"`
}) error {
	files, err := filepath.Glob(filepath.Join(bases, "*.yaml"))
	if err != nil {
		return err
	}
	for _, f := range files {
		objs, err := readObjects(f)
		if err != nil {
			return err
		}
		for _, o := range objs {
			meta := o["metadata"].(object)
			ls := object{"clusterctl.cluster.x-k8s.io": ""} // as clusterctl init does, so that clusterctl move finds the kind
			for _, l := range labels {
				for k, v := range l.Pairs {
					ls[k] = v
				}
			}
			meta["labels"] = ls
			b, err := json.Marshal(o)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			name := meta["name"].(string)
			version, err := storageVersion(o)
			if err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
			i.CRDs = append(i.CRDs, crd{Name: name, Version: version, SHA256: hex.EncodeToString(sum[:])})
			if err := os.WriteFile(filepath.Join(out, name+".json"), b, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func storageVersion(crd object) (string, error) {
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		if v, ok := v.(object); ok && v["storage"] == true {
			return v["name"].(string), nil
		}
	}
	return "", errors.New("no version is the stored one")
}

func (i *index) addWebhooks(file, prefix string) error {
	objs, err := readObjects(file)
	if err != nil {
		return err
	}
	for _, o := range objs {
		addNamePrefix(o, prefix)
		switch o["kind"] {
		case "MutatingWebhookConfiguration":
			i.Mutating = append(i.Mutating, o)
		case "ValidatingWebhookConfiguration":
			i.Validating = append(i.Validating, o)
		default:
			return fmt.Errorf("%s: unexpected kind %v", file, o["kind"])
		}
	}
	return nil
}

func addNamePrefix(o object, prefix string) {
	meta := o["metadata"].(object)
	meta["name"] = prefix + meta["name"].(string)
}

func readKustomization(file string) (kustomization, error) {
	var k kustomization
	b, err := os.ReadFile(file)
	if err != nil {
		return k, err
	}
	return k, yaml.Unmarshal(b, &k)
}

func readObjects(file string) ([]object, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []object
	// The line break in front makes a --- in the first line a separator too.
	for _, doc := range strings.Split("\n"+string(b), "\n---\n") {
		o := object{}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(o) > 0 {
			out = append(out, o)
		}
	}
	return out, nil
}
