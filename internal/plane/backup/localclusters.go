package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// scratchPrefix begins the names of folders in the data directory for copies of local clusters.
const scratchPrefix = ".backup-"

// hostTimeout bounds one request to a host.
const hostTimeout = 5 * time.Second

// freezeTimeout is how long processes may take to be frozen. One that waits for the disk is not until that is done.
const freezeTimeout = 10 * time.Second

func (s Source) launcher() launch.Launcher {
	return launch.Launcher{HostsDir: hostapi.HostsDir(s.DataDir)}
}

// addLocalClusters adds the files of all local clusters. Those of a cluster are copied while all its processes are
// frozen, so they are as after a power failure, which every etcd, also one of several members, recovers from. The
// archive is written from the copy: who reads it slowly does not keep a cluster frozen.
func (s Source) addLocalClusters(ctx context.Context, a *archive.Writer, clusters []hostapi.Cluster) (err error) {
	scratch, err := os.MkdirTemp(s.DataDir, scratchPrefix)
	if err != nil {
		return fmt.Errorf("backing up local clusters: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, c := range clusters {
		dir := s.launcher().Dir(c.UID)
		name := filepath.Join(filepath.Base(hostapi.HostsDir(s.DataDir)), filepath.Base(string(dir)))
		to := filepath.Join(scratch, name)
		if err := copyFrozen(ctx, dir, to); err != nil {
			return fmt.Errorf("backing up local cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
		if err := s.addTree(a, scratch, name); err != nil {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	return nil
}

func copyFrozen(ctx context.Context, dir hostapi.Dir, to string) error {
	thaw, err := freeze(ctx, dir)
	if err != nil {
		return err
	}
	defer thaw()
	return copyCluster(string(dir), to)
}

// freeze stops the processes of a cluster, all together, and returns when they stand still. Its host goes on.
func freeze(ctx context.Context, dir hostapi.Dir) (thaw func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	for {
		pids, err := processes(ctx, dir)
		if err != nil {
			return nil, err
		}
		thaw = func() { signal(pids, syscall.SIGCONT) }
		signal(pids, syscall.SIGSTOP)
		err = awaitStopped(ctx, pids)
		if err == nil {
			var now []int
			// The host may have started one anew meanwhile.
			if now, err = processes(ctx, dir); err == nil && slices.Equal(now, pids) {
				return thaw, nil
			}
		}
		thaw()
		if err != nil {
			return nil, err
		}
	}
}

// processes are those of a cluster, without its host. There are none if the host does not run.
func processes(ctx context.Context, dir hostapi.Dir) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	s, err := hostapi.NewClient(dir).Status(ctx)
	if errors.Is(err, hostapi.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			if p.PID > 0 {
				pids = append(pids, p.PID)
			}
		}
	}
	slices.Sort(pids)
	return pids, nil
}

func signal(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // one that has ended is noticed by who compares
	}
}

// awaitStopped waits until each thread of the processes stands still: one that writes does so until that is done.
func awaitStopped(ctx context.Context, pids []int) error {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for slices.ContainsFunc(pids, hasRunningThread) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("its processes cannot be frozen: %w", ctx.Err())
		case <-t.C:
		}
	}
	return nil
}

func hasRunningThread(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is well-formed
	return slices.ContainsFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false // it has ended
		}
		// The state follows the name, which is in parentheses and may hold any character.
		text := string(b)
		state := strings.TrimSpace(text[strings.LastIndexByte(text, ')')+1:])
		return !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "t") && !strings.HasPrefix(state, "Z")
	})
}

// copyCluster copies the files of a cluster, without logs, sockets and the lock of its host. The copy does not depend
// on where the cluster was.
func copyCluster(from, to string) error {
	return filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file of the host's, which is not frozen
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		switch {
		case isLog(rel) && e.IsDir():
			return fs.SkipDir
		case isLog(rel) || rel == filepath.Base(hostapi.Dir("").LockFile()) || e.Type()&fs.ModeSocket != 0:
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		err = copyFile(from, rel, filepath.Join(to, rel))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// matches says whether a path below a cluster's directory fits a pattern.
func matches(pattern, rel string) bool {
	ok, _ := filepath.Match(filepath.FromSlash(pattern), rel) // the patterns here are well-formed
	return ok
}

// isLog says whether a path below a cluster's directory is a log or a folder of logs.
func isLog(rel string) bool {
	return matches("machines/*/log", rel) || strings.HasPrefix(rel, filepath.Base(hostapi.Dir("").LogFile()))
}

// copyFile copies a file of the cluster's directory dir. In place of a link, which kubelets have for their certificate
// and which names the whole path, the file it leads to is copied.
func copyFile(dir, rel, to string) error {
	from, err := resolveLink(dir, rel)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", from)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if matches(hostapi.MachineDir("machines/*").RootFS("etc/kubernetes/*.conf"), rel) {
		root := filepath.Join(dir, filepath.Dir(filepath.Dir(filepath.Dir(rel))))
		err = copyKubeconfig(out, in, root)
	} else {
		_, err = io.Copy(out, in) // shares the bytes where the file system can
	}
	return errors.Join(err, out.Close())
}

func resolveLink(dir, rel string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, rel))
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if !isBelow(dir, real) {
		return "", fmt.Errorf("%s leads out of the cluster's directory", filepath.Join(dir, rel))
	}
	return real, nil
}

// maxKubeconfig bounds what is kept in memory.
const maxKubeconfig = 1 << 20

// copyKubeconfig makes paths below root, which is two folders above the kubeconfig, relative to the kubeconfig.
func copyKubeconfig(w io.Writer, r io.Reader, root string) error {
	b, err := io.ReadAll(io.LimitReader(r, maxKubeconfig))
	if err != nil {
		return err
	}
	_, err = w.Write(bytes.ReplaceAll(b, []byte(root+"/"), []byte("../../")))
	return err
}

// cleanUp removes copies that an earlier run left, and thaws clusters it may have left frozen.
func (s Source) cleanUp(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(s.DataDir, scratchPrefix+"*"))
	if err != nil || len(left) == 0 {
		return err
	}
	clusters, err := s.launcher().Clusters()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range clusters {
		pids, err := processes(ctx, s.launcher().Dir(c.UID))
		errs = append(errs, err)
		signal(pids, syscall.SIGCONT)
	}
	for _, l := range left {
		errs = append(errs, os.RemoveAll(l))
	}
	return errors.Join(errs...)
}
