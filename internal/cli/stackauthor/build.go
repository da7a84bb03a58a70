package stackauthor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// buildOptions are the flags of build.
type buildOptions struct {
	registryFlags
	mode, output, lastReleases, kubernetes   string
	stackVersion, addonVersion, imageVersion string
}

// newBuildCommand is polder stack build.
func newBuildCommand() *cobra.Command {
	var b buildOptions
	c := &cobra.Command{
		Use:        "build [DIR]",
		Short:      "Make a release of a stack",
		SuggestFor: []string{"create", "package"},
		Long: `build makes releases of the source of a stack, one for each minor of Kubernetes it serves, and writes each to
a directory of its name. The same source gives the same bytes on every computer. It lints first: a stack with
errors is not built.

Modes:
  stable   the next version after the last release: v1, v2, …; if nothing has changed, nothing is built
  hash     a version made of the content, for example v0-sha.abc1234
  WORD     a pre-release of the next stable version, for example v4-beta.1 in mode beta
With --version the version is yours (mode custom).

The last release is looked for where --last says: oci://host/repository, or a directory; without it, in the
output directory. A change of the class alone, of one stage or of a locked chart counts too.

Charts that charts need are taken from stack.lock (see polder stack lock) and become part of the release.`,
		Args: cmdline.Args(0, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			return b.run(c.Context(), c.InOrStdin(), c.OutOrStdout(), dirArg(args))
		},
	}
	b.addFlags(c)
	f := c.Flags()
	f.StringVarP(&b.mode, "mode", "m", stack.ModeStable, "`mode`: stable, hash, or the word of a pre-release")
	f.StringVar(&b.output, "output", ".release", "`directory` for releases")
	f.StringVar(&b.lastReleases, "last", "", "`where` earlier releases are (default: the output directory)")
	f.StringVar(&b.kubernetes, "kubernetes", "", "build only for this `minor` of Kubernetes, or for this patch where the stack names only the minor")
	f.StringVar(&b.stackVersion, "version", "", "`version` of the release, instead of a mode")
	f.StringVar(&b.addonVersion, "addon-version", "", "`version` of the add-ons, with --version (default: the same)")
	f.StringVar(&b.imageVersion, "node-image-version", "",
		"`version` of the node images, with --version (default: the same)")
	return c
}

// run lints before it builds anything, and writes only when all minors are built: half of a set of releases is of no
// use.
func (b *buildOptions) run(ctx context.Context, stdin io.Reader, out io.Writer, dir string) error {
	s, err := readSource(dir, b.kubernetes)
	if err != nil {
		return err
	}
	b.excludeOutput(dir, s)
	f, err := b.chartFetcher(stdin)
	if err != nil {
		return err
	}
	deps, err := f.Vendor(ctx, s)
	if err != nil {
		return wrapDirError(dir, err)
	}
	versions := s.Versions
	if b.kubernetes != "" {
		versions = []version.Kubernetes{s.Kubernetes}
	}
	if err := lintSource(ctx, dir, s, lint.Options{VendoredCharts: deps, Minors: versions}); err != nil {
		return err
	}
	var releases []*stack.Release
	for _, k := range versions {
		one, err := s.ForKubernetes(k)
		if err != nil {
			return err
		}
		v, err := b.planVersions(ctx, stdin, one)
		if errors.Is(err, stack.ErrUnchanged) {
			fmt.Fprintf(out, "%s: %v\n", one.ReleaseLine, err)
			continue
		}
		if err != nil {
			return wrapDirError(dir, err)
		}
		r, err := one.Build(v, deps)
		if err != nil {
			return wrapDirError(dir, err)
		}
		releases = append(releases, r)
	}
	return b.writeReleases(ctx, out, releases)
}

// excludeOutput takes earlier releases out of the source they lie in: they would change its hash.
func (b *buildOptions) excludeOutput(dir string, s *stack.Source) {
	from, err := filepath.Abs(dir)
	to, err2 := filepath.Abs(b.output)
	if err != nil || err2 != nil {
		return // then it does not lie there, or nothing can be written anyway
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return
	}
	for name := range s.Files {
		if strings.HasPrefix(name, filepath.ToSlash(rel)+"/") {
			delete(s.Files, name)
		}
	}
}

// writeReleases writes all releases, or none if one of them is there with another content.
func (b *buildOptions) writeReleases(ctx context.Context, out io.Writer, releases []*stack.Release) error {
	store, ref, err := registry.Open(ctx, directoryReference(b.output), registry.Options{})
	if err != nil {
		return err
	}
	for _, r := range releases {
		old, err := store.Pull(ctx, ref.WithTag(r.Name.Tag()))
		if err == nil && !maps.EqualFunc(old.Release.Files, r.Files, bytes.Equal) {
			return fmt.Errorf("%s has another content; remove it, or choose another --output",
				filepath.Join(b.output, r.Name.Tag()))
		}
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	for _, r := range releases {
		p, err := store.Publish(ctx, r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", p.Reference); err != nil {
			return err
		}
	}
	return nil
}

// directoryReference keeps a plain name from being taken for the host of a registry.
func directoryReference(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return "./" + filepath.ToSlash(filepath.Clean(dir))
}

// lintSource lints the source, so that what cannot be used is not released.
func lintSource(ctx context.Context, dir string, s *stack.Source, o lint.Options) error {
	found, err := lint.Run(ctx, s.Files, o)
	if err != nil {
		return err
	}
	if errs := found.Errors(); len(errs) > 0 {
		return wrapDirError(dir, fmt.Errorf("it is not sound, so nothing was written\n%w", errs))
	}
	return nil
}

// planVersions needs the releases before this one, unless the version is given or follows from the content.
func (b *buildOptions) planVersions(ctx context.Context, stdin io.Reader, s *stack.Source) (stack.Versions, error) {
	if b.stackVersion != "" {
		return b.customVersions(s)
	}
	if b.addonVersion != "" || b.imageVersion != "" {
		return stack.Versions{}, exit.Errorf(exit.Usage, "--addon-version and --node-image-version need --version")
	}
	if b.mode == "custom" { // to csctl that is a mode, and not the word of a pre-release
		return stack.Versions{}, exit.Errorf(exit.Usage, "mode custom means a version of your own; give it with --version")
	}
	if b.mode == stack.ModeHash {
		return s.Plan(b.mode, stack.History{})
	}
	h, err := b.readHistory(ctx, stdin, s)
	if err != nil {
		return stack.Versions{}, err
	}
	return s.Plan(b.mode, h)
}

// customVersions leaves zero what is not given, which then is the version of the stack.
func (b *buildOptions) customVersions(s *stack.Source) (stack.Versions, error) {
	var parsed [3]version.Version
	for i, text := range []string{b.stackVersion, b.addonVersion, b.imageVersion} {
		if text == "" {
			continue
		}
		v, err := version.Parse(text)
		if err != nil {
			return stack.Versions{}, exit.With(exit.Usage, err)
		}
		parsed[i] = v
	}
	return s.CustomVersions(parsed[0], parsed[1], parsed[2])
}

// readHistory is what was released of a line before.
func (b *buildOptions) readHistory(ctx context.Context, stdin io.Reader, s *stack.Source) (stack.History, error) {
	where := b.lastReleases
	if where == "" {
		where = directoryReference(b.output)
	}
	store, ref, err := b.openStore(ctx, stdin, where)
	if err != nil {
		return stack.History{}, err
	}
	list, err := store.List(ctx, func(r version.ReleaseName) bool { return r.SameLine(s.ReleaseLine) })
	if errors.Is(err, registry.ErrNotFound) && b.lastReleases == "" {
		return stack.History{}, nil // the first release makes the place
	}
	if err != nil {
		return stack.History{}, err
	}
	for _, w := range list.Warnings { // others than this line's do not matter here; list shows them
		if (w.Kind == registry.Unreadable || w.Kind == registry.InvalidKubernetes) && w.IsOfLine(s.ReleaseLine) {
			return stack.History{}, fmt.Errorf(
				"the next version cannot be told, because %s; remove it, or choose the version with --version", w,
			)
		}
	}
	var h stack.History
	var last *registry.Entry
	for i, e := range list.Entries {
		h.Versions = append(h.Versions, e.Release.Version)
		if e.Release.Version.IsStable() {
			last = &list.Entries[i] // they are sorted
		}
	}
	if last == nil {
		return h, nil
	}
	p, err := store.Pull(ctx, ref.WithTag(last.Release.Tag()))
	if err != nil {
		return h, err
	}
	h.Last = p.Release
	return h, nil
}
