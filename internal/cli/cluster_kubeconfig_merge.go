package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/atomicfile"
	"github.com/polder-kaas/polder/internal/exit"
)

// mergeInto adds a context to a file, whose other entries stay. It takes the lock that kubectl takes too.
func mergeInto(file string, k *clientcmdapi.Config, force bool) (err error) {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // so that a link stays one
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lock := file + ".lock"
	l, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("another program changes %s; try again, or remove %s if there is none", file, lock)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(), os.Remove(lock)) }()

	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !isKubeconfig(b) {
		return exit.Errorf(exit.Usage, "%s is no kubeconfig, so nothing is merged into it; set $KUBECONFIG to another file, or use --output-file", file)
	}
	into, err := clientcmd.Load(b)
	if err != nil {
		return fmt.Errorf("%s cannot be read as a kubeconfig: %w", file, err)
	}
	if err := merged(into, k, force); err != nil {
		return err
	}
	text, err := clientcmd.Write(*into)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, text, 0o600)
}

// merged puts the one context of k into another kubeconfig. What belongs to another cluster is not replaced unless
// it is forced.
func merged(into, k *clientcmdapi.Config, force bool) error {
	name := k.CurrentContext
	context := k.Contexts[name]
	server := k.Clusters[context.Cluster].Server
	old := into.Contexts[name]
	if old != nil && !force {
		if c := into.Clusters[old.Cluster]; c == nil || c.Server != server {
			return exit.Errorf(exit.Failure, "your kubeconfig has a context %q for another cluster; rename that with: kubectl config rename-context %s NEW, or replace it with --force", name, name)
		}
	}
	if c := into.Clusters[context.Cluster]; c != nil && c.Server != server && !force {
		return exit.Errorf(exit.Failure, "your kubeconfig has a cluster %q at another address, which other contexts may use; replace it with --force", context.Cluster)
	}
	if old != nil {
		context.Namespace, context.Extensions = old.Namespace, old.Extensions // what people set themselves
	}
	maps.Copy(into.Clusters, k.Clusters)
	maps.Copy(into.AuthInfos, k.AuthInfos)
	into.Contexts[name] = context
	if into.CurrentContext == "" {
		into.CurrentContext = name
	}
	return nil
}
