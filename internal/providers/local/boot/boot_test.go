package boot

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func write(t *testing.T, file string, v any) {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// newMachineDir writes a machine as its host leaves it for the boot.
func newMachineDir(t *testing.T, data string) hostapi.MachineDir {
	t.Helper()
	m := newMachine(t)
	m.UserData = []byte(data)
	write(t, m.dir.SpecFile(), m.MachineSpec)
	write(t, m.dir.AddressFile(), []byte("127.1.0.11\n"))
	write(t, m.dir.ClusterFile(), testCluster)
	return m.dir
}

func readBootStatus(t *testing.T, dir hostapi.MachineDir) (b hostapi.BootStatus) {
	t.Helper()
	content, err := os.ReadFile(dir.BootFile())
	if err != nil || json.Unmarshal(content, &b) != nil {
		t.Fatalf("%s, %v", content, err)
	}
	return b
}

func TestRunThatCannotSucceed(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"no cloud-config":   {"#!/bin/sh\n", "reading bootstrap data"},
		"no kubeadm":        {"#cloud-config\nruncmd: [echo hello]\n", "there is neither /run/kubeadm/kubeadm.yaml nor /run/kubeadm/kubeadm-join-config.yaml"},
		"ignition":          {`{"ignition":{}}`, "reading bootstrap data"},
		"no data at all":    {"", "reading bootstrap data"},
		"ntp, but no nodes": {"#cloud-config\nntp: {enabled: true}\n", "there is neither"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newMachineDir(t, c.data)
			for attempt := 1; attempt <= 2; attempt++ {
				err := Run(t.Context(), dir)
				b := readBootStatus(t, dir)
				if err == nil || !strings.Contains(b.Problem, c.want) || strings.Contains(b.Problem, "\n") || b.Attempts != attempt || b.Done || b.Step != "" {
					t.Errorf("%v, %+v", err, b)
				}
				if strings.HasPrefix(c.data, "#cloud-config") && len(b.NotHonored) != 1 {
					t.Errorf("attempt %d: not honored %q", attempt, b.NotHonored)
				}
			}
		})
	}
}

func TestRunOfABootedMachine(t *testing.T) {
	dir := newMachineDir(t, "nonsense")
	write(t, dir.BootFile(), hostapi.BootStatus{Done: true, Attempts: 3})
	if err := Run(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if b := readBootStatus(t, dir); b.Attempts != 3 {
		t.Errorf("%+v", b)
	}
}

func TestLoadMachineErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, hostapi.MachineDir)
		want   string
	}{
		"no machine":       {func(_ *testing.T, d hostapi.MachineDir) { _ = os.Remove(d.SpecFile()) }, "machine.json"},
		"half a machine":   {func(t *testing.T, d hostapi.MachineDir) { write(t, d.SpecFile(), []byte("{")) }, "machine.json"},
		"half a boot":      {func(t *testing.T, d hostapi.MachineDir) { write(t, d.BootFile(), []byte("{")) }, "boot.json"},
		"no cluster":       {func(_ *testing.T, d hostapi.MachineDir) { _ = os.Remove(d.ClusterFile()) }, "cluster.json"},
		"no address":       {func(_ *testing.T, d hostapi.MachineDir) { _ = os.Remove(d.AddressFile()) }, "address"},
		"not an address":   {func(t *testing.T, d hostapi.MachineDir) { write(t, d.AddressFile(), []byte("x")) }, "unable to parse"},
		"an empty machine": {func(t *testing.T, d hostapi.MachineDir) { write(t, d.SpecFile(), []byte{}) }, "machine.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newMachineDir(t, "")
			c.change(t, dir)
			if _, err := loadMachine(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestRunSteps(t *testing.T) {
	errNo := errors.New("no")
	for name, c := range map[string]struct {
		done []string // by an earlier attempt
		fail string
		ran  string
		want []string // done now
	}{
		"all":                            {ran: "a b c", want: []string{"a", "b", "c"}},
		"one fails":                      {fail: "b", ran: "a b", want: []string{"a"}},
		"what was done is not repeated":  {done: []string{"a"}, ran: "b c", want: []string{"a", "b", "c"}},
		"what is not kept is done again": {done: []string{"a", "b"}, ran: "b c", want: []string{"a", "b", "c"}},
		"and may fail then":              {done: []string{"a", "b", "c"}, fail: "b", ran: "b", want: []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			for _, n := range c.done {
				m.status.Steps = append(m.status.Steps, hostapi.BootStep{Name: n})
			}
			var ran []string
			var steps []step
			for _, n := range []string{"a", "b", "c"} {
				steps = append(steps, step{name: n, runOnce: n != "b", run: func(context.Context, *machine) error {
					ran = append(ran, n)
					if at := readBootStatus(t, m.dir).Step; at != n {
						t.Errorf("%s is said to be at work during %s", at, n)
					}
					if n == c.fail {
						return errNo
					}
					return nil
				}})
			}
			err := m.runSteps(t.Context(), steps)
			if (c.fail == "") != (err == nil) || err != nil && (!errors.Is(err, errNo) || !strings.HasPrefix(err.Error(), c.fail+": ")) {
				t.Errorf("error %v", err)
			}
			var got []string
			for _, s := range readBootStatus(t, m.dir).Steps {
				got = append(got, s.Name)
			}
			if strings.Join(ran, " ") != c.ran || !cmp.Equal(got, c.want) {
				t.Errorf("ran %q, want %q; done %q, want %q", ran, c.ran, got, c.want)
			}
		})
	}
}

// What the files step found out is not lost when a later step fails and the next attempt skips it.
func TestNotesStay(t *testing.T) {
	m := newMachine(t)
	m.recordNote("from %s", "files")
	m.recordNotHonored("a")
	m.recordIgnoredUserData()
	m.recordNote("from %s", "config")
	for range 2 {
		m.recordNotHonored("a")
	}
	if d := cmp.Diff(hostapi.BootStatus{Notes: []string{"from files", "from config"}, NotHonored: []string{"a"}}, m.status); d != "" {
		t.Error(d)
	}
}

func TestIsClusterInfoSigned(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want bool
	}{
		"signed":               {`{"data":{"jws-kubeconfig-abcdef":"x","kubeconfig":"y"}}`, true},
		"with another token":   {`{"data":{"jws-kubeconfig-fedcba":"x"}}`, false},
		"not signed":           {`{"data":{"kubeconfig":"y"}}`, false},
		"an empty signature":   {`{"data":{"jws-kubeconfig-abcdef":""}}`, false},
		"nothing":              {`{}`, false},
		"nonsense":             {`<html>`, false},
		"more than is read of": {`{"x":"` + strings.Repeat("x", maxClusterInfo) + `","data":{"jws-kubeconfig-abcdef":"x"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			if got := isClusterInfoSigned(t.Context(), s.Client(), s.URL, "abcdef"); got != c.want || asked != "/api/v1/namespaces/kube-public/configmaps/cluster-info" {
				t.Errorf("%t, asked for %s", got, asked)
			}
			s.Close()
			if isClusterInfoSigned(t.Context(), s.Client(), s.URL, "abcdef") {
				t.Error("signed by nobody")
			}
		})
	}
}
