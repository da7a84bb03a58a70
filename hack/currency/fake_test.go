package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// fakeProxy has some versions of modules, by path@version, and refuses or breaks on others.
type fakeProxy struct {
	Has     map[string]string // the day of the release; with a ! before it go cannot verify it
	Refuses []string
	Breaks  []string

	mu    sync.Mutex
	asked []string
}

var errBroken = errors.New("connection reset")

func (p *fakeProxy) lookup(_ context.Context, path, version string) (moduleRelease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := path + "@" + version
	p.asked = append(p.asked, version)
	for _, b := range p.Breaks {
		if b == name {
			return moduleRelease{}, errBroken
		}
	}
	for _, r := range p.Refuses {
		if r == name || r == "all" {
			return moduleRelease{}, errRefused
		}
	}
	text, ok := p.Has[name]
	if !ok {
		return moduleRelease{}, errUnknown
	}
	verified := text[0] != '!'
	if !verified {
		text = text[1:]
	}
	day, err := time.Parse(time.DateOnly, text)
	return moduleRelease{Time: day, Verified: verified}, err
}

func day(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
