package lineage

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/stack/version"
)

// ReleaseUnavailableError says why there is no release for what is asked for, and who can change that.
type ReleaseUnavailableError struct {
	Reason string // of v1alpha1
	Field  string // below spec.stack
	Text   string
	Actor  v1alpha1.Actor
	Next   string
}

func (m *ReleaseUnavailableError) Error() string { return m.Text }

// Choose is the release a cluster asks for: the one that is pinned, or the newest of the channel that is
// ready. The error is a Missing if there is none.
func (c *Catalogue) Choose(provider string, ref v1alpha1.StackReference) (CatalogueEntry, error) {
	lines := c.findStacks(provider, ref.Name)
	if len(lines) == 0 {
		return CatalogueEntry{}, c.noStackError(provider, ref.Name)
	}
	minor := slices.DeleteFunc(slices.Clone(lines), func(l catalogueStack) bool { return l.minor.MinorString() != ref.KubernetesVersion })
	if len(minor) == 0 {
		return CatalogueEntry{}, c.noMinorError(lines, ref)
	}
	if ref.Version != "" {
		return choosePinned(minor, ref)
	}
	return chooseNewest(minor, ref)
}

func (c *Catalogue) noStackError(provider, name string) error {
	m := &ReleaseUnavailableError{Reason: v1alpha1.ReasonStackMissing, Field: "name", Actor: v1alpha1.Customer}
	m.Text = fmt.Sprintf("there is no stack %q for provider %s that serves namespace %s", name, provider, c.namespace)
	all := c.DescribeStacks()
	if len(all) == 0 {
		m.Text += ", and no other"
		m.Actor, m.Next = v1alpha1.PlatformOperator, fmt.Sprintf("make a ClusterStack of %s %s in namespace %s, or in %s with spec.allowedNamespaces", provider, name, c.namespace, v1alpha1.CatalogueNamespace)
		return m
	}
	m.Text += "; there is " + strings.Join(all, ", ")
	m.Next = "choose a stack that is there in spec.stack.name"
	return m
}

func (c *Catalogue) noMinorError(lines []catalogueStack, ref v1alpha1.StackReference) error {
	var have []string
	for _, l := range lines {
		if m := l.minor.MinorString(); !slices.Contains(have, m) {
			have = append(have, m)
		}
	}
	return &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonStackMissing, Field: "kubernetesVersion", Actor: v1alpha1.Customer,
		Text: fmt.Sprintf("stack %s has no Kubernetes %s; it has %s", ref.Name, ref.KubernetesVersion, strings.Join(have, ", ")),
		Next: "choose a version that is there in spec.stack.kubernetesVersion",
	}
}

// choosePinned is the release with the version that is named.
func choosePinned(lines []catalogueStack, ref v1alpha1.StackReference) (CatalogueEntry, error) {
	v, err := version.Parse(ref.Version)
	if err != nil {
		return CatalogueEntry{}, &ReleaseUnavailableError{Reason: v1alpha1.ReasonReleaseMissing, Field: "version", Actor: v1alpha1.Customer, Text: err.Error(), Next: "correct spec.stack.version"}
	}
	var have []string
	for _, l := range lines {
		for _, r := range l.releases {
			if r.Version == v {
				return r, notReady(r)
			}
			if r.IsReady() {
				have = append(have, r.Version.String())
			}
		}
	}
	text := fmt.Sprintf("stack %s for Kubernetes %s has no release %s here", ref.Name, ref.KubernetesVersion, v)
	if len(have) > 0 {
		text += "; it has " + strings.Join(have, ", ")
	}
	return CatalogueEntry{}, &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonReleaseMissing, Field: "version", Actor: v1alpha1.Customer, Text: text,
		Next: fmt.Sprintf("choose a release that is there in spec.stack.version, or ask the platform operator to add %s to spec.versions of ClusterStack %s/%s", v, lines[0].stack.Namespace, lines[0].stack.Name),
	}
}

// chooseNewest is the newest release of the channel that is ready. One that is not ready does not stand in the way of
// an older one.
func chooseNewest(lines []catalogueStack, ref v1alpha1.StackReference) (CatalogueEntry, error) {
	var waiting *CatalogueEntry
	var other []string
	for i := range lines {
		if channelOf(lines[i].stack) != ref.Channel {
			other = append(other, string(channelOf(lines[i].stack)))
			continue
		}
		for j, r := range lines[i].releases {
			if !matchesChannel(ref.Channel, r) {
				continue
			}
			if r.IsReady() {
				return r, nil
			}
			if waiting == nil {
				waiting = &lines[i].releases[j]
			}
		}
	}
	switch {
	case waiting != nil:
		return *waiting, notReady(*waiting)
	case len(other) == len(lines):
		return CatalogueEntry{}, &ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "channel", Actor: v1alpha1.Customer,
			Text: fmt.Sprintf("stack %s for Kubernetes %s has no channel %s here; it has %s", ref.Name, ref.KubernetesVersion, ref.Channel, other[0]),
			Next: "choose the channel that is there in spec.stack.channel",
		}
	}
	l := lines[slices.IndexFunc(lines, func(l catalogueStack) bool { return channelOf(l.stack) == ref.Channel })]
	m := &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonReleaseMissing, Field: "name",
		Text: fmt.Sprintf("ClusterStack %s/%s has no release yet%s", l.stack.Namespace, l.stack.Name, readyMessage(l.stack.Status.Conditions)),
	}
	m.Actor, m.Next = whoActs(l.stack.Status.Conditions, fmt.Sprintf("see why: polder stack status %s -n %s", l.stack.Name, l.stack.Namespace))
	return CatalogueEntry{}, m
}

func matchesChannel(c v1alpha1.Channel, r CatalogueEntry) bool {
	return r.Version.IsStable() == (c != v1alpha1.ChannelCustom)
}

// notReady is nil for a release of which clusters can be made.
func notReady(r CatalogueEntry) error {
	if r.IsReady() {
		return nil
	}
	m := &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonReleaseNotReady, Field: "version",
		Text: fmt.Sprintf("release %s is not ready yet%s", r.Key(), readyMessage(r.Object.Status.Conditions)),
	}
	m.Actor, m.Next = whoActs(r.Object.Status.Conditions, fmt.Sprintf("see why: polder stack status -n %s", r.Object.Namespace))
	return m
}

// whoActs is nobody for what comes by itself: it has not been looked at yet, or waits for its turn.
func whoActs(conditions []metav1.Condition, otherwise string) (v1alpha1.Actor, string) {
	c := meta.FindStatusCondition(conditions, csv1.ConditionReady)
	if c == nil || c.Status == metav1.ConditionUnknown || c.Reason == csv1.ReasonClassNotSeen || c.Reason == csv1.ReasonSourceBusy {
		return v1alpha1.Nobody, ""
	}
	return v1alpha1.PlatformOperator, otherwise
}

func readyMessage(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, csv1.ConditionReady)
	if c == nil || c.Message == "" {
		return ""
	}
	return ": " + c.Message
}
