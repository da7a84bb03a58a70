package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// ordinaryUser is the user that everything runs as if root runs this. It needs no entry in the user database.
	ordinaryUser = 61234
	stopTimeout  = time.Minute
	waitTimeout  = "5m"
)

// plane is a management plane in a directory of its own, with the programs that are used.
type plane struct {
	dir string // short, since sockets will be in it
}

// startPlane starts a plane, and leaves it to the caller to remove it, also after an error.
func startPlane(ctx context.Context, out io.Writer, e2e string) (*plane, error) {
	dir, err := os.MkdirTemp("", "polder-")
	if err != nil {
		return nil, err
	}
	p := &plane{dir: dir}
	if err := p.installPrograms(e2e); err != nil {
		return p, err
	}
	fmt.Fprintln(out, "a plane starts")
	_, err = p.runPolder(ctx, nil, "up", "--listen", "127.0.0.1:0")
	return p, err
}

// installPrograms puts the programs where the ordinary user can reach them, wherever the checkout is.
func (p *plane) installPrograms(e2e string) error {
	for _, d := range []string{"bin", "home", "reports"} {
		if err := os.Mkdir(filepath.Join(p.dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, from := range map[string]string{"polder": "bin/polder", "polderd": "bin/polderd", "e2e.test": e2e} {
		if err := linkOrCopy(from, filepath.Join(p.dir, "bin", name)); err != nil {
			return err
		}
	}
	// The tests of the command line call a kubectl; polder has one in it.
	script := fmt.Sprintf("#!/bin/sh\nexec %s --data-dir %s kubectl \"$@\"\n", filepath.Join(p.dir, "bin/polder"),
		filepath.Join(p.dir, "data"))
	if err := os.WriteFile(filepath.Join(p.dir, "bin/kubectl"), []byte(script), 0o755); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chown(path, ordinaryUser, ordinaryUser)
	})
}

func linkOrCopy(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not built; run: make conformance", from)
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	if os.Link(from, to) == nil {
		return nil
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) // another file system
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// command runs a program of the plane as the ordinary user, with a clean environment. It gets time to clean up
// when ctx ends, and is killed after that.
func (p *plane) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.dir, "bin", program), args...)
	c.Env = []string{"HOME=" + filepath.Join(p.dir, "home"), "PATH=/usr/bin:/bin", "TMPDIR=" + p.dir, "GOGC=400"}
	c.Dir = p.dir
	// A group of its own keeps ^C on the terminal away from it: we end it ourselves.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}
	}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = stopTimeout
	return c
}

// runPolder runs polder for this plane and returns what it prints.
func (p *plane) runPolder(ctx context.Context, in io.Reader, args ...string) (string, error) {
	c := p.command(ctx, "polder", append([]string{"--data-dir", filepath.Join(p.dir, "data")}, args...)...)
	var out, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = in, &out, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("polder %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}

// runKubectl runs kubectl against the plane.
func (p *plane) runKubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	return p.runPolder(ctx, in, append([]string{"kubectl", "--kubeconfig", filepath.Join(p.dir, "data/admin.kubeconfig")},
		args...)...)
}

// writeKubeconfig writes the administrator's access to a cluster into a file.
func (p *plane) writeKubeconfig(ctx context.Context, cluster string) (string, error) {
	encoded, err := p.runKubectl(ctx, nil, "get", "secret", cluster+"-kubeconfig", "-o", "jsonpath={.data.value}")
	if err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of %s: %w", cluster, err)
	}
	file := filepath.Join(p.dir, cluster+".kubeconfig")
	return file, os.WriteFile(file, b, 0o644) // the ordinary user must read it
}

// remove ends the plane and its clusters, also after an interrupt, and removes all files.
func (p *plane) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	_, err := p.runPolder(ctx, nil, "down", "--clusters")
	return errors.Join(err, os.RemoveAll(p.dir))
}
