package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxFileSize is more than any API server takes.
const maxFileSize = 1 << 20

// readCluster reads a cluster from a file; - is the command's input. All errors are bad input.
func readCluster(file string, in io.Reader) (*v1alpha1.WorkloadCluster, error) {
	name := file
	if file == "-" {
		name = "the input"
	} else {
		info, err := os.Stat(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, exit.Errorf(exit.Usage, "there is no file %s; name one with a WorkloadCluster", file)
		case err != nil:
			return nil, exit.With(exit.Usage, err)
		case info.IsDir():
			return nil, exit.Errorf(exit.Usage, "%s is a directory; name a file with a WorkloadCluster", file)
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		defer f.Close() //nolint:errcheck // nothing is written
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxFileSize+1))
	switch {
	case err != nil:
		return nil, exit.Errorf(exit.Usage, "reading %s: %w", name, err)
	case len(b) > maxFileSize:
		return nil, exit.Errorf(exit.Usage,
			"%s is larger than 1 MiB, which no cluster is; name a file with one WorkloadCluster", name)
	}
	c, err := parseCluster(name, b)
	return c, exit.With(exit.Usage, err)
}

// parseCluster is strict: what nobody would act on is an error, with its line.
func parseCluster(name string, b []byte) (*v1alpha1.WorkloadCluster, error) {
	document, err := findDocument(name, b)
	if err != nil {
		return nil, err
	}
	if err := checkKind(name, document); err != nil {
		return nil, err
	}
	w := &fileCheck{}
	w.check(document, clusterType, "")
	if err := w.err(name); err != nil {
		return nil, err
	}
	c := &v1alpha1.WorkloadCluster{}
	if err := yaml.UnmarshalStrict(dropEmptyDocuments(b, document), c); err != nil {
		return nil, fmt.Errorf("%s: %w; see: polder kubectl explain workloadcluster", name, err)
	}
	clearServerFields(c)
	return c, nil
}

// dropEmptyDocuments is a text without the empty documents before the one that counts, which keeps its lines.
func dropEmptyDocuments(b []byte, document *yamlv3.Node) []byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	before := document.Line - 1
	return append(bytes.Repeat([]byte("\n"), before), bytes.Join(lines[before:], nil)...)
}

// findDocument finds the one that has something in it.
func findDocument(name string, b []byte) (*yamlv3.Node, error) {
	var found []*yamlv3.Node
	d := yamlv3.NewDecoder(bytes.NewReader(b))
	for {
		var n yamlv3.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s is no YAML: %s", name, strings.TrimPrefix(output.Sanitize(err.Error()), "yaml: "))
		}
		if len(n.Content) > 0 && n.Content[0].Tag != "!!null" {
			found = append(found, n.Content[0])
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s is empty; it must have a WorkloadCluster", name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s has %d documents; give each cluster a file of its own", name, len(found))
}

// checkKind comes before the fields: of another kind all of them would be wrong, and the one mistake would drown.
func checkKind(name string, n *yamlv3.Node) error {
	const want = "it must be a WorkloadCluster: apiVersion polder.dev/v1alpha1, kind WorkloadCluster"
	if n.Kind != yamlv3.MappingNode {
		return fmt.Errorf("%s is a %s; %s", name, describeNodeKind(n), want)
	}
	var id metav1.TypeMeta
	_ = n.Decode(&struct {
		APIVersion *string `yaml:"apiVersion"`
		Kind       *string `yaml:"kind"`
	}{&id.APIVersion, &id.Kind}) // what is of another type stays empty
	switch {
	case id.Kind == "" || id.APIVersion == "":
		return fmt.Errorf("%s does not say what it is: apiVersion or kind is missing; %s", name, want)
	case id.Kind != "WorkloadCluster" || id.APIVersion != v1alpha1.GroupVersion.String():
		return fmt.Errorf("%s is a %s of %s; %s", name, id.Kind, id.APIVersion, want)
	}
	return nil
}

// clearServerFields takes away what an API server puts in, so that a cluster that was read can be made again.
func clearServerFields(c *v1alpha1.WorkloadCluster) {
	c.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkloadCluster"}
	c.ObjectMeta = metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Labels: c.Labels, Annotations: c.Annotations}
	c.Status = v1alpha1.WorkloadClusterStatus{}
}
