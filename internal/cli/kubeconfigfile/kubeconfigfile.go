// Package kubeconfigfile changes kubeconfigs of people, in which there may be much that is not ours.
package kubeconfigfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Options say what Merge may do.
type Options struct {
	Force bool // what belongs to another cluster may be replaced
	Use   bool // the context becomes the current one
}

// Merge adds a context to one of the files that make up a kubeconfig, whose other entries stay. It takes the
// lock that kubectl takes too.
func Merge(file string, rules *clientcmd.ClientConfigLoadingRules, k *clientcmdapi.Config, o Options) (err error) {
	change := func(into, whole *clientcmdapi.Config) error {
		if err := mergeContext(into, whole, k, o.Force); err != nil {
			return err
		}
		if o.Use {
			into.CurrentContext = k.CurrentContext
		}
		return nil
	}
	return update(file, rules, change)
}

// Remove takes a context out of a file, with the cluster and the user of the same name.
func Remove(file string, name string) error {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{file}}
	return update(file, rules, func(into, _ *clientcmdapi.Config) error {
		delete(into.Contexts, name)
		delete(into.Clusters, name)
		delete(into.AuthInfos, name)
		if into.CurrentContext == name {
			into.CurrentContext = ""
		}
		return nil
	})
}

// update changes one of the files that make up a kubeconfig.
func update(file string, rules *clientcmd.ClientConfigLoadingRules,
	change func(into, whole *clientcmdapi.Config) error) (err error) {
	unlock, err := lockKubeconfig(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	file = ResolveLink(file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !IsKubeconfig(b) {
		return exit.Errorf(exit.Usage,
			"%s is no kubeconfig, so nothing is merged into it; set $KUBECONFIG to another file, or use --output-file", file)
	}
	into, err := clientcmd.Load(b)
	if err != nil {
		return fmt.Errorf("%s cannot be read as a kubeconfig: %w", file, err)
	}
	whole, err := rules.Load()
	if err != nil {
		return fmt.Errorf("%s cannot be read as a kubeconfig: %w", connect.KubeconfigPaths(rules), err)
	}
	if err := change(into, whole); err != nil {
		return err
	}
	text, err := clientcmd.Write(*into)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, text, 0o600)
}

// lockKubeconfig locks a file under the name that kubectl does, whether or not that is a link.
func lockKubeconfig(file string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	lock := file + ".lock"
	l, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("another program changes %s; try again, or remove %s if there is none", file, lock)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(l.Close(), os.Remove(lock)) }, nil
}

// ResolveLink is the file that a link leads to, whether or not it is there, so that the link stays one.
func ResolveLink(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return target
	}
	target, err := os.Readlink(file)
	switch {
	case err != nil:
		return file
	case filepath.IsAbs(target):
		return target
	}
	return filepath.Join(filepath.Dir(file), target)
}

// mergeContext puts the one context of k into a kubeconfig, which is all of whole or one of its files. What belongs to
// another cluster is neither replaced nor hidden unless it is forced.
func mergeContext(into, whole, k *clientcmdapi.Config, force bool) error {
	name := k.CurrentContext
	context := k.Contexts[name]
	server := k.Clusters[context.Cluster].Server
	old := whole.Contexts[name]
	if old != nil && !force {
		if c := whole.Clusters[old.Cluster]; c == nil || c.Server != server {
			return exit.Errorf(exit.Failure,
				"your kubeconfig has a context %q for another cluster; rename that with: kubectl config rename-context %s NEW, or replace it with --force", name, name)
		}
	}
	if c := whole.Clusters[context.Cluster]; c != nil && c.Server != server && !force {
		return exit.Errorf(exit.Failure,
			"your kubeconfig has a cluster %q at another address, which other contexts may use; replace it with --force",
			context.Cluster)
	}
	if old != nil {
		// What people set themselves stays, unless they say otherwise now.
		context.Namespace, context.Extensions = cmp.Or(context.Namespace, old.Namespace), old.Extensions
	}
	maps.Copy(into.Clusters, k.Clusters)
	maps.Copy(into.AuthInfos, k.AuthInfos)
	into.Contexts[name] = context
	if whole.CurrentContext == "" {
		into.CurrentContext = name
	}
	return nil
}

// MergeTarget is the file that kubectl config would write to: that which has the context, else the usual one; but never
// a plane's own, which polder up tells people to name in $KUBECONFIG: polderd writes that anew.
func MergeTarget(rules *clientcmd.ClientConfigLoadingRules, name string) string {
	if whole, err := rules.Load(); err == nil { // else it is said later
		if c := whole.Contexts[name]; c != nil && filepath.Base(c.LocationOfOrigin) != connect.AdminKubeconfig {
			return c.LocationOfOrigin
		}
	}
	others := &clientcmd.ClientConfigLoadingRules{Precedence: slices.DeleteFunc(slices.Clone(rules.Precedence),
		func(f string) bool {
			return filepath.Base(f) == connect.AdminKubeconfig
		})}
	if len(others.Precedence) == 0 {
		return clientcmd.RecommendedHomeFile
	}
	return others.GetDefaultFilename()
}

// IsKubeconfig also takes an empty file, which has nothing to lose.
func IsKubeconfig(b []byte) bool {
	var id struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	return strings.TrimSpace(string(b)) == "" || yaml.Unmarshal(b, &id) == nil && id.Kind == "Config" &&
		id.APIVersion == "v1"
}
