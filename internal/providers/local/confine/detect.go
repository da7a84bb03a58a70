package confine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// detectTimeout is generous: the program is large, and its disk may be slow.
const detectTimeout = time.Minute

// Detect tries what the kernel offers: a process of binary confines itself as a host would, with all there is, and
// without namespaces if that cannot be.
func Detect(ctx context.Context, binary string) hostapi.Confinement {
	m, err := runProbe(ctx, binary, true)
	if err == nil {
		return m
	}
	why := "no namespaces of their own: " + err.Error()
	if m, err = runProbe(ctx, binary, false); err != nil {
		return hostapi.Confinement{Missing: err.Error()}
	}
	m.Missing = why
	return m
}

func runProbe(ctx context.Context, binary string, namespaces bool) (m hostapi.Confinement, err error) {
	ctx, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "polder-probe-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var out, problem bytes.Buffer
	c := exec.CommandContext(ctx, binary) //nolint:forbidigo // our own program
	c.Args, c.Dir, c.Stdout, c.Stderr = []string{ProbeProgram, dir}, dir, &out, &problem
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Env = []string{} // nothing of ours
	if namespaces {
		c.Env = append(c.Env, namespacesVariable+"=1")
		setNamespaces(c.SysProcAttr)
	}
	if err := c.Run(); err != nil {
		if text := strings.TrimSpace(problem.String()); text != "" {
			return m, errors.New(text)
		}
		return m, fmt.Errorf("starting a process in them: %w", err)
	}
	return m, json.Unmarshal(out.Bytes(), &m)
}
