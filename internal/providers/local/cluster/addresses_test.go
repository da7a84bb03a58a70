package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// testPort is one that nobody uses on 127.x.y.1.
const testPort = 26443

func scopeOf(uid string) *scope {
	return newScope(&infrav1.LocalCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "local", UID: types.UID(uid), Generation: 3},
		Spec:       infrav1.LocalClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Port: testPort}},
	}, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner"}})
}

func newReconciler(t *testing.T) *Reconciler {
	t.Helper()
	return &Reconciler{Hosts: launch.Launcher{HostsDir: t.TempDir()}, Clock: clock.RealClock{}}
}

func reason(s *scope) string {
	if c := conditions.Get(s.local, infrav1.HostRunningCondition); c != nil {
		return c.Reason
	}
	return ""
}

func allCandidateBlocks(seed string) (all []netip.Prefix) {
	for b := range candidateBlocks(seed) {
		all = append(all, b)
	}
	return all
}

func TestCandidateBlocks(t *testing.T) {
	loopback, others := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/16")
	first := map[netip.Prefix]bool{}
	for _, seed := range []string{"", "a", "b", "c", "d", "0a1b2c3d-4e5f-6789-abcd-ef0123456789"} {
		seen := map[netip.Prefix]bool{}
		for i, b := range allCandidateBlocks(seed) {
			if seen[b] {
				t.Errorf("%q: %s comes twice", seed, b)
			}
			seen[b] = true
			if !loopback.Contains(b.Addr()) || b.Overlaps(others) || b != b.Masked() || b.Bits() != blockBits {
				t.Errorf("%q: %s is no block for us", seed, b)
			}
			if err := (hostapi.Cluster{UID: "u", Addresses: b, Port: 1}).Validate(); err != nil {
				t.Error(err)
			}
			if i == 0 {
				first[b] = true
			}
		}
		if len(seen) != maxCandidates {
			t.Errorf("%q: %d blocks, want %d", seed, len(seen), maxCandidates)
		}
	}
	if len(first) != 6 {
		t.Errorf("six clusters begin at %d places", len(first))
	}
	n := 0
	for range candidateBlocks("a") {
		if n++; n == 3 {
			break
		}
	}
}

func TestChooseBlockSkips(t *testing.T) {
	all := allCandidateBlocks("u")
	for name, c := range map[string]struct {
		used, bound []netip.Prefix
		want        netip.Prefix
		err         string
	}{
		"nothing":                    {want: all[0]},
		"those of other clusters":    {used: all[:2], want: all[2]},
		"those of other programs":    {bound: all[:1], want: all[1]},
		"both":                       {used: all[:1], bound: all[1:2], want: all[2]},
		"all are those of others":    {used: all, err: "other clusters have all"},
		"one is used and one is not": {used: all[1:2], want: all[0]},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciler(t)
			for i, b := range c.used {
				if err := r.Hosts.PrepareDir(hostapi.Cluster{UID: fmt.Sprint("other", i), Addresses: b, Port: testPort}); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range c.bound {
				listen(t, hostapi.Cluster{Addresses: b, Port: testPort}.Endpoint())
			}
			got, err := r.chooseBlock(t.Context(), scopeOf("u").local)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "%!") {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Addresses != c.want || got.Port != testPort || got.UID != "u" || got.Namespace != "ns" {
				t.Errorf("%+v, %v; want %s", got, err, c.want)
			}
		})
	}
}

func listen(t *testing.T, at netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func TestAllocateAddresses(t *testing.T) {
	r := newReconciler(t)
	s := scopeOf("u")
	for range 2 { // the second time it is recorded
		if err := r.allocateAddresses(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	want := hostapi.Cluster{Addresses: allCandidateBlocks("u")[0], Port: testPort}
	if e := s.local.Spec.ControlPlaneEndpoint; e.Host != want.Endpoint().Addr().String() || e.Port != testPort ||
		s.local.Status.Addresses != want.Addresses.String() {
		t.Errorf("endpoint %v, addresses %s", e, s.local.Status.Addresses)
	}
	all, err := r.Hosts.Clusters()
	if err != nil || len(all) != 1 || all[0].Name != "owner" || all[0].Addresses != want.Addresses {
		t.Errorf("remembered %v, %v", all, err)
	}

	t.Run("though it is in use now", func(t *testing.T) {
		listen(t, want.Endpoint())
		if err := r.allocateAddresses(t.Context(), scopeOf("u")); err != nil {
			t.Error(err)
		}
	})
	t.Run("but not changed", func(t *testing.T) {
		s := scopeOf("u")
		s.local.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.9.9.9", Port: testPort}
		err := r.allocateAddresses(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "127.9.9.9") || reason(s) != infrav1.EndpointChangeReason {
			t.Errorf("error %v, reason %s", err, reason(s))
		}
	})
	t.Run("nor is the port", func(t *testing.T) {
		s := scopeOf("u")
		s.local.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: want.Endpoint().Addr().String(), Port: 1}
		if err := r.allocateAddresses(t.Context(), s); err == nil || reason(s) != infrav1.EndpointChangeReason {
			t.Errorf("error %v, reason %s", err, reason(s))
		}
	})
}

func TestDefaultPort(t *testing.T) {
	s := scopeOf("u")
	s.local.Spec.ControlPlaneEndpoint.Port = 0
	if err := newReconciler(t).allocateAddresses(t.Context(), s); err != nil || s.local.Spec.ControlPlaneEndpoint.Port != 6443 {
		t.Errorf("port %d, %v", s.local.Spec.ControlPlaneEndpoint.Port, err)
	}
}

// Clusters that are made at the same time see the same free blocks.
func TestAllocateAddressesConcurrently(t *testing.T) {
	for range 20 {
		r := newReconciler(t)
		used := make([]string, 2)
		var wg sync.WaitGroup
		for i, uid := range uidsWithSameFirstBlock(t) {
			wg.Go(func() {
				s := scopeOf(uid)
				if err := r.allocateAddresses(t.Context(), s); err != nil {
					t.Error(err)
				}
				used[i] = s.local.Status.Addresses
			})
		}
		wg.Wait()
		if used[0] == used[1] {
			t.Fatalf("two clusters have %s", used[0])
		}
	}
}

// uidsWithSameFirstBlock returns two UIDs whose search begins at the same block.
func uidsWithSameFirstBlock(t *testing.T) []string {
	t.Helper()
	begins := map[netip.Prefix]string{}
	for i := range 10_000 {
		uid := fmt.Sprint(i)
		b := allCandidateBlocks(uid)[0]
		if begins[b] != "" {
			return []string{begins[b], uid}
		}
		begins[b] = uid
	}
	t.Fatal("no twins")
	return nil
}
