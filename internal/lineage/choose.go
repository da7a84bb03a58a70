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

// ReleaseUnavailableError says why there is no release for a stack reference, and who can change that.
type ReleaseUnavailableError struct {
	Reason string // one of v1alpha1
	Field  string // below spec.stack
	Text   string
	Actor  v1alpha1.Actor
	Next   string
}

func (m *ReleaseUnavailableError) Error() string { return m.Text }

// Choose returns the release that a cluster asks for: the pinned one, or the newest of the channel that is ready. If
// there is none, the error is a *ReleaseUnavailableError.
func (c *Catalogue) Choose(provider string, ref v1alpha1.StackReference) (CatalogueEntry, error) {
	lines := c.findStacks(provider, ref.Name)
	if len(lines) == 0 {
		return CatalogueEntry{}, c.noStackError(provider, ref.Name)
	}
	if ref.KubernetesVersion == "" {
		return CatalogueEntry{}, noChannelError(lines, ref) // nobody could fill it in: the channel has no release
	}
	minor := slices.DeleteFunc(slices.Clone(lines),
		func(l catalogueStack) bool { return l.minor.MinorString() != ref.KubernetesVersion })
	if len(minor) == 0 {
		return CatalogueEntry{}, c.noMinorError(lines, ref)
	}
	if ref.Version != "" {
		return choosePinned(minor, ref)
	}
	return chooseNewest(minor, ref)
}

// noStackError says that no such stack serves the namespace. If no stack does at all, only the platform operator can
// help.
func (c *Catalogue) noStackError(provider, name string) error {
	m := &ReleaseUnavailableError{Reason: v1alpha1.ReasonStackMissing, Field: "name", Actor: v1alpha1.Customer}
	m.Text = fmt.Sprintf("there is no stack %q for provider %s that serves namespace %s", name, provider, c.namespace)
	all := c.DescribeStacks()
	if len(all) == 0 {
		m.Text += ", and no other"
		m.Actor, m.Next = v1alpha1.PlatformOperator, fmt.Sprintf(
			"make a ClusterStack of %s %s in namespace %s, or in %s with spec.allowedNamespaces", provider, name, c.namespace,
			v1alpha1.CatalogueNamespace,
		)
		return m
	}
	m.Text += "; there is " + strings.Join(all, ", ")
	m.Next = "choose a stack that is there in spec.stack.name"
	return m
}

// noMinorError says which minors the stack has instead.
func (c *Catalogue) noMinorError(lines []catalogueStack, ref v1alpha1.StackReference) error {
	var have []string
	for _, l := range lines {
		if m := l.minor.MinorString(); !slices.Contains(have, m) {
			have = append(have, m)
		}
	}
	return &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonStackMissing, Field: "kubernetesVersion", Actor: v1alpha1.Customer,
		Text: fmt.Sprintf("stack %s has no Kubernetes %s; it has %s", ref.Name, ref.KubernetesVersion,
			strings.Join(have, ", ")),
		Next: "choose a version that is there in spec.stack.kubernetesVersion",
	}
}

// noChannelError says that a stack has nothing in the channel, and which channels it has.
func noChannelError(lines []catalogueStack, ref v1alpha1.StackReference) error {
	var have []string
	for _, l := range lines {
		if c := string(channelOf(l.stack)); !slices.Contains(have, c) {
			have = append(have, c)
		}
	}
	return &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonStackMissing, Field: "channel", Actor: v1alpha1.Customer,
		Text: fmt.Sprintf("stack %s has nothing in channel %s; it has the channel %s", ref.Name, ref.Channel,
			strings.Join(have, ", ")),
		Next: "choose a channel that is there in spec.stack.channel",
	}
}

// choosePinned returns the release with the version that spec.stack.version names, of any channel.
func choosePinned(lines []catalogueStack, ref v1alpha1.StackReference) (CatalogueEntry, error) {
	v, err := version.Parse(ref.Version)
	if err != nil {
		return CatalogueEntry{}, &ReleaseUnavailableError{
			Reason: v1alpha1.ReasonReleaseMissing, Field: "version", Actor: v1alpha1.Customer, Text: err.Error(),
			Next: "correct spec.stack.version",
		}
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

// chooseNewest returns the newest release of the channel that is ready. An older release that is ready wins over a
// newer one that is not.
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
			// Lines and releases are in order, so this is the newest of the first line: the one that the error names.
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
			Text: fmt.Sprintf("stack %s for Kubernetes %s has no channel %s here; it has %s", ref.Name, ref.KubernetesVersion,
				ref.Channel, other[0]),
			Next: "choose the channel that is there in spec.stack.channel",
		}
	}
	// Only reached if a stack is of the channel, so the index is never -1.
	l := lines[slices.IndexFunc(lines, func(l catalogueStack) bool { return channelOf(l.stack) == ref.Channel })]
	m := &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonReleaseMissing, Field: "name",
		Text: fmt.Sprintf("ClusterStack %s/%s has no release yet%s", l.stack.Namespace, l.stack.Name,
			readyMessage(l.stack.Status.Conditions)),
	}
	m.Actor, m.Next = whoActs(l.stack.Status.Conditions,
		fmt.Sprintf("see why: polder stack status %s -n %s", l.stack.Name, l.stack.Namespace))
	return CatalogueEntry{}, m
}

// matchesChannel reports whether a release is of a channel: custom is all that is not stable.
func matchesChannel(c v1alpha1.Channel, r CatalogueEntry) bool {
	return r.Version.IsStable() == (c != v1alpha1.ChannelCustom)
}

// notReady returns nil for a release that is ready, otherwise an error with the message of its Ready condition.
func notReady(r CatalogueEntry) error {
	if r.IsReady() {
		return nil
	}
	m := &ReleaseUnavailableError{
		Reason: v1alpha1.ReasonReleaseNotReady, Field: "version",
		Text: fmt.Sprintf("release %s is not ready yet%s", r.Key(), readyMessage(r.Object.Status.Conditions)),
	}
	m.Actor, m.Next = whoActs(r.Object.Status.Conditions,
		fmt.Sprintf("see why: polder stack status -n %s", r.Object.Namespace))
	return m
}

// whoActs returns who has to act on a Ready condition, and how. It is nobody if a release or stack becomes ready by
// itself: it has not been reconciled yet, or waits for its turn.
func whoActs(conditions []metav1.Condition, otherwise string) (v1alpha1.Actor, string) {
	c := meta.FindStatusCondition(conditions, csv1.ConditionReady)
	if c == nil || c.Status == metav1.ConditionUnknown || c.Reason == csv1.ReasonClassNotSeen ||
		c.Reason == csv1.ReasonSourceBusy {
		return v1alpha1.Nobody, ""
	}
	return v1alpha1.PlatformOperator, otherwise
}

// readyMessage returns the message of the Ready condition as the end of a sentence.
func readyMessage(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, csv1.ConditionReady)
	if c == nil || c.Message == "" {
		return ""
	}
	return ": " + c.Message
}
