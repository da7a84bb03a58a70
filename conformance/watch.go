package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// event is one of a watch.
type event struct {
	name string // of the server-sent event: cluster, synced or problem
	Type string
	// Cluster is after the change.
	Cluster v1alpha1.WorkloadCluster
}

// stream is an open watch.
type stream struct {
	session *session
	body    io.Closer
	lines   *bufio.Scanner
	cancel  context.CancelFunc
}

// watch opens one, which ends at the latest when things have had the time that they may take.
func (s *session) watch(ctx context.Context) (*stream, error) {
	// This one is not read. It waits while there are too many requests.
	if _, err := s.want(ctx, request{op: "watch-clusters"}, http.StatusOK); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	r, err := s.newRequest(ctx, request{op: "watch-clusters"})
	if err != nil {
		cancel()
		return nil, err
	}
	res, err := s.client.Do(r) //nolint:bodyclose // close of the stream does
	if err != nil {
		cancel()
		return nil, err
	}
	w := &stream{session: s, body: res.Body, lines: bufio.NewScanner(res.Body), cancel: cancel}
	w.lines.Buffer(nil, maxAnswer)
	if res.StatusCode != http.StatusOK || !isStream(res) {
		w.close()
		return nil, fmt.Errorf("%s is to be answered 200 with text/event-stream; it was %d with %q", r.URL.RequestURI(),
			res.StatusCode, res.Header.Get("Content-Type"))
	}
	return w, nil
}

func (w *stream) close() {
	w.cancel()
	_ = w.body.Close() // read only
}

// next is the event that comes next. Several lines of data are one text, and comments nothing, as the standard of
// server-sent events has it.
func (w *stream) next() (event, error) {
	name, data := "", []string{}
	for w.lines.Scan() {
		line := w.lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		case line == "" && (name != "" || len(data) > 0):
			return w.read(name, strings.Join(data, "\n"))
		}
	}
	if err := w.lines.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return event{}, fmt.Errorf("the watch broke off: %w", err)
	}
	return event{}, errWatchEnded
}

var errWatchEnded = errors.New("the watch ended, or nothing more came in time")

func (w *stream) read(name, data string) (event, error) {
	e := event{name: name}
	switch name {
	case "synced":
		return e, nil
	case "problem":
		return e, fmt.Errorf("the watch ended with a problem: %s", oneLine(data))
	case "cluster":
	default:
		return e, fmt.Errorf("the watch has an event %q; it has cluster, synced and problem", name)
	}
	if err := w.session.document.validate(eventSchema, []byte(data)); err != nil {
		return e, fmt.Errorf("the data of an event cluster is no ClusterEvent: %w", err)
	}
	return e, json.Unmarshal([]byte(data), &e)
}

// await reads until an event of a kind comes for a cluster.
func (w *stream) await(kind, cluster string) (event, error) {
	for {
		e, err := w.next()
		if err != nil {
			return e, fmt.Errorf("waiting for %s of cluster %s in the watch: %w", kind, cluster, err)
		}
		if e.name == "cluster" && e.Cluster.Name == cluster && e.Type == kind {
			return e, nil
		}
	}
}
