package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// SharedPlane is a plane that the tests of one package use together, each in namespaces of its
// own. It starts with its first use; Run ends it after the last test.
type SharedPlane struct {
	Flags         []string // of polderd; to be set before the first use, as all here
	OfferShipped  bool     // the plane offers the stacks in the binary
	ExtraPrograms []string // programs of ours beside polder and polderd
	Env           []string // further variables of polderd's environment

	start func() (*Plane, error)
	plane *Plane
}

// NewShared prepares a shared plane; declare one for each package.
func NewShared() *SharedPlane { return newShared(false, nil) }

// NewSharedWithout prepares a shared plane that does not run the components of these names, so that
// tests can run them in its place.
func NewSharedWithout(components ...string) *SharedPlane { return newShared(true, components) }

func newShared(fault bool, without []string) *SharedPlane {
	s := &SharedPlane{}
	s.start = sync.OnceValues(func() (*Plane, error) {
		tree, err := makeTree(fault)
		if err != nil {
			return nil, err
		}
		for _, program := range s.ExtraPrograms {
			if err := installProgram(program, filepath.Join(tree.Bin, program)); err != nil {
				return nil, err
			}
		}
		s.plane = newPlane(tree)
		s.plane.OfferShipped, s.plane.Env = s.OfferShipped, s.Env
		if err := s.plane.writeExcluded(without); err != nil {
			return nil, err
		}
		if err := s.plane.start(s.Flags...); err != nil {
			return nil, err
		}
		return s.plane, s.plane.awaitReady()
	})
	return s
}

// Get returns the running plane.
func (s *SharedPlane) Get(t testing.TB) *Plane {
	t.Helper()
	p, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Run is the body of TestMain: it runs the tests and cleans up after them.
func (s *SharedPlane) Run(m *testing.M) int {
	code := m.Run()
	if s.plane == nil {
		return code
	}
	s.plane.Kill()
	if err := s.plane.stopHosts(); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up:", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "log of the shared polderd:\n%s\n", tail(s.plane.Log(), 60))
	}
	if err := s.plane.Tree.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up:", err)
		return 1
	}
	return code
}
