package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// maxProblems is how many are told at once.
const maxProblems = 10

// maxNodes bounds the work: references within a file can make a small one large.
const maxNodes = 100_000

var (
	clusterType     = reflect.TypeFor[v1alpha1.WorkloadCluster]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// quantityPattern is how many bytes something has, as the plane takes it. Exponents are not part of it: a number with a
// large one takes for ever to read.
var quantityPattern = regexp.MustCompile(`^[0-9]{1,24}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`)

// fileCheck finds what in a file does not fit a type, with the lines, which decoders do not tell.
type fileCheck struct {
	problems []string
	nodes    int
}

// addProblem notes the line too: the same path may be there in several items of a list.
func (w *fileCheck) addProblem(n *yamlv3.Node, path, format string, args ...any) {
	w.problems = append(w.problems,
		fmt.Sprintf("line %d: %s%s", n.Line, strings.TrimPrefix(path+": ", ": "), fmt.Sprintf(format, args...)))
}

// err tells all mistakes at once, as admission does, so that one try is enough to mend them.
func (w *fileCheck) err(file string) error {
	n := len(w.problems)
	if n == 0 {
		return nil
	}
	if n == 1 {
		return fmt.Errorf("%s, %s", file, w.problems[0])
	}
	told := w.problems
	if n > maxProblems {
		told = append(slices.Clone(w.problems[:maxProblems]), fmt.Sprintf("and %d more", n-maxProblems))
	}
	return fmt.Errorf("%s has %d mistakes:\n  %s", file, n, strings.Join(told, "\n  "))
}

// check compares a part of the file with the type it is read into.
func (w *fileCheck) check(n *yamlv3.Node, t reflect.Type, path string) {
	for n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// An alias is followed each time, so that a few lines can mean billions of nodes.
	if w.nodes++; w.nodes == maxNodes {
		w.addProblem(n, path, "the file has too many parts")
	}
	if w.nodes >= maxNodes || n.Tag == "!!null" {
		return
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		w.checkQuantity(n, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if w.checkNodeKind(n, yamlv3.MappingNode, path, "fields and their values") {
			w.checkFields(n, t, path)
		}
	case reflect.Map:
		if w.checkNodeKind(n, yamlv3.MappingNode, path, "names and their values") {
			w.checkEntries(n, t, path)
		}
	case reflect.Slice:
		if w.checkNodeKind(n, yamlv3.SequenceNode, path, "a list") {
			for i, c := range n.Content {
				w.check(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
			}
		}
	default:
		w.checkScalar(n, t, path)
	}
}

// checkNodeKind says in words of YAML what is there and what must be; what is below a wrong node is not looked at.
func (w *fileCheck) checkNodeKind(n *yamlv3.Node, kind yamlv3.Kind, path, want string) bool {
	if n.Kind != kind {
		w.addProblem(n, path, "this is a %s; it must be %s", describeNodeKind(n), want)
		return false
	}
	return true
}

// checkEntries checks a map whose keys are free, such as labels.
func (w *fileCheck) checkEntries(n *yamlv3.Node, t reflect.Type, path string) {
	w.forEachPair(n, path, func(_, value *yamlv3.Node, path string) {
		w.check(value, t.Elem(), path)
	})
}

// checkFields checks an object, whose keys are the fields of its type.
func (w *fileCheck) checkFields(n *yamlv3.Node, t reflect.Type, path string) {
	known := jsonFieldsOf(t)
	w.forEachPair(n, path, func(key, value *yamlv3.Node, path string) {
		if key.Tag == "!!merge" {
			return // what is merged in is read where it is written
		}
		if of, ok := known[key.Value]; ok {
			w.check(value, of, path)
			return
		}
		w.addProblem(key, path, "there is no such field%s", suggestField(key.Value, known))
	})
}

// forEachPair refuses a key that is there twice: parsers differ in which one counts.
func (w *fileCheck) forEachPair(n *yamlv3.Node, path string, do func(key, value *yamlv3.Node, path string)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		below := strings.TrimPrefix(path+"."+key.Value, ".")
		if seen[key.Value] {
			w.addProblem(key, below, "this is there twice; keep one")
			continue
		}
		seen[key.Value] = true
		do(key, n.Content[i+1], below)
	}
}

// checkScalar refuses what decoders would refuse with other words, above all numbers that are meant as text.
func (w *fileCheck) checkScalar(n *yamlv3.Node, t reflect.Type, path string) {
	switch {
	case n.Kind != yamlv3.ScalarNode:
		w.addProblem(n, path, "this is a %s; it must be a single value", describeNodeKind(n))
	case t.Kind() == reflect.String && (n.Tag != "!!str" && n.Tag != "!!timestamp" || isYAML11Boolean(n)):
		w.addProblem(n, path, "%s is no text; write it in quotes: %q", n.Value, n.Value)
	case t.Kind() == reflect.Bool && n.Tag != "!!bool":
		w.addProblem(n, path, "%q is neither true nor false", n.Value)
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		if _, err := strconv.ParseInt(n.Value, 0, t.Bits()); err != nil || n.Tag != "!!int" {
			w.addProblem(n, path, "%q is no whole number, or too large a one", n.Value)
		}
	}
}

// isYAML11Boolean says that Kubernetes, which reads an older YAML, takes a word for true or false.
func isYAML11Boolean(n *yamlv3.Node) bool {
	words := []string{"y", "n", "yes", "no", "on", "off"}
	return n.Style == 0 && slices.Contains(words, strings.ToLower(n.Value))
}

// checkQuantity checks types that read themselves: amounts; all others take anything.
func (w *fileCheck) checkQuantity(n *yamlv3.Node, t reflect.Type, path string) {
	if t != quantityType {
		return
	}
	if !quantityPattern.MatchString(n.Value) {
		w.addProblem(n, path, "%q is no amount; write, for example, 4Gi", n.Value)
	}
}
