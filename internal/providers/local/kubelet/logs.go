package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// maxTail is how much of a log's end is searched for lines.
const maxTail = 4 << 20

// followInterval is how often a followed log is looked at.
const followInterval = 200 * time.Millisecond

// serveLogs serves a static pod's log file, or says for a simulated pod that it has none.
func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	o, err := parseLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := k.findStaticPod(namespace, name)
	if p == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		const notice = "Container %s of pod %s/%s is simulated on node %s: it has no process and prints nothing.\n"
		//nolint:gosec // plain text, to an API server
		_, _ = fmt.Fprintf(w, notice, container, namespace, name, k.cfg.Machine.Node)
		if o.follow {
			flush(w)
			<-r.Context().Done()
		}
		return
	}
	err = o.copyLog(r.Context(), w, p.spec.Log.Path)
	if errors.Is(err, os.ErrNotExist) {
		http.Error(w, fmt.Sprintf("%s has printed nothing yet", name), http.StatusNotFound)
		return
	}
	if err != nil {
		k.cfg.Log.Debug("serving a log", "pod", name, "error", err)
	}
}

type logOptions struct {
	follow bool
	tail   int64 // lines; -1: all
	limit  int64 // bytes; -1: all
}

func parseLogOptions(q url.Values) (logOptions, error) {
	o := logOptions{tail: -1, limit: -1, follow: q.Get("follow") == "true"}
	for name, into := range map[string]*int64{"tailLines": &o.tail, "limitBytes": &o.limit} {
		if v := q.Get(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 0 {
				return o, fmt.Errorf("%s=%q is not a number of at least 0", name, v)
			}
			*into = n
		}
	}
	return o, nil
}

// copyLog writes the log, and goes on with what is added if it is followed.
func (o logOptions) copyLog(ctx context.Context, w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it may be another one by then
	if err := o.seekToTail(f); err != nil {
		return err
	}
	left := o.limit
	for {
		n, err := copyUpTo(w, f, left)
		if err != nil {
			return err
		}
		if left >= 0 {
			left -= n
		}
		if !o.follow || left == 0 {
			return nil
		}
		flush(w)
		t := time.NewTimer(followInterval)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		if f, err = reopenIfRotated(f, file); err != nil {
			return err
		}
	}
}

// reopenIfRotated returns the new file once the log was rotated and the old one is read to its end.
func reopenIfRotated(f *os.File, file string) (*os.File, error) {
	now, err := os.Stat(file)
	if err != nil {
		return f, nil // between two files
	}
	was, err := f.Stat()
	if err != nil || os.SameFile(now, was) {
		return f, err
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at < was.Size() {
		return f, err
	}
	next, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil // rotated once more, just now
	}
	if err != nil {
		return f, err
	}
	_ = f.Close() // read only
	return next, nil
}

func copyUpTo(w io.Writer, r io.Reader, limit int64) (int64, error) {
	if limit >= 0 {
		r = io.LimitReader(r, limit)
	}
	return io.Copy(w, r)
}

// seekToTail goes to the first of the last lines wanted.
func (o logOptions) seekToTail(f *os.File) error {
	if o.tail < 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	begin := max(0, info.Size()-maxTail)
	b := make([]byte, info.Size()-begin)
	if _, err := f.ReadAt(b, begin); err != nil && err != io.EOF {
		return err
	}
	_, err = f.Seek(begin+int64(lastLinesOffset(b, o.tail)), io.SeekStart)
	return err
}

// lastLinesOffset is where the last n lines of b begin.
func lastLinesOffset(b []byte, n int64) int {
	end := len(b)
	if n == 0 {
		return end
	}
	if end > 0 && b[end-1] == '\n' {
		end--
	}
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(b[:end], '\n')
		if i < 0 {
			return 0
		}
		end = i
	}
	return end + 1
}

func flush(w io.Writer) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
