package hostapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotRunning means that nobody answers on the host's socket.
var ErrNotRunning = errors.New("the cluster's host is not running")

// Bounds of what is read from a host: an answer, and a sentence that says why there is none.
const (
	maxReply = 64 << 20
	maxError = 64 << 10
)

// watchGracePeriod is what a host gets beyond the time it may hold a Watch.
const watchGracePeriod = 10 * time.Second

// Client talks to one host. It may be used concurrently.
type Client struct {
	dir  Dir
	http *http.Client
}

// NewClient is for the host in dir; it connects with each request, since another host may answer by then.
func NewClient(dir Dir) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", dir.Socket())
	}
	return &Client{dir: dir, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status returns the status at once.
func (c *Client) Status(ctx context.Context) (Status, error) { return c.status(ctx, "") }

// Watch returns the status when something has changed since the given revision, or after WatchTimeout.
func (c *Client) Watch(ctx context.Context, since int64) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, WatchTimeout+watchGracePeriod)
	defer cancel()
	return c.status(ctx, "?since="+strconv.FormatInt(since, 10))
}

func (c *Client) status(ctx context.Context, query string) (Status, error) {
	var s Status
	err := c.do(ctx, http.MethodGet, "/status"+query, nil, &s)
	return s, err
}

// PutMachine makes the machine; one that is there with the same UID is left as it is.
func (c *Client) PutMachine(ctx context.Context, m MachineSpec) error {
	return c.do(ctx, http.MethodPut, "/machines/"+url.PathEscape(m.Name), m, nil)
}

// DrainMachine takes the machine's API server out of service gracefully, because the machine will go.
func (c *Client) DrainMachine(ctx context.Context, machine string) error {
	return c.do(ctx, http.MethodPost, "/machines/"+url.PathEscape(machine)+"/drain", nil, nil)
}

// SetPower switches a machine off as if its plug were pulled, or on again.
func (c *Client) SetPower(ctx context.Context, machine string, on bool) error {
	return c.do(ctx, http.MethodPost, "/machines/"+url.PathEscape(machine)+"/power?on="+strconv.FormatBool(on), nil, nil)
}

// Failure is a way for a machine to fail.
type Failure string

// Ways to fail.
const (
	FailKill      Failure = "kill"      // its processes end at once, and are started again
	FailStop      Failure = "stop"      // its processes hang
	FailPartition Failure = "partition" // it is cut off from the network; its processes run
	FailContinue  Failure = "continue"  // they go on, and it is connected again
	FailDisk      Failure = "disk"      // its files are gone, and with them the machine
)

// FailMachine makes a machine fail.
func (c *Client) FailMachine(ctx context.Context, machine string, how Failure) error {
	return c.do(ctx, http.MethodPost, "/machines/"+url.PathEscape(machine)+"/fail?how="+url.QueryEscape(string(how)), nil, nil)
}

// DeleteMachine ends the machine's processes and removes its files; it returns when they are gone.
func (c *Client) DeleteMachine(ctx context.Context, machine string) error {
	return c.do(ctx, http.MethodDelete, "/machines/"+url.PathEscape(machine), nil, nil)
}

// Stop ends the host: gracefully, or at once with all that runs in it.
func (c *Client) Stop(ctx context.Context, atOnce bool) error {
	return c.do(ctx, http.MethodPost, "/stop?now="+strconv.FormatBool(atOnce), nil, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://host"+path, body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return wrapNotRunning(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	if res.StatusCode >= http.StatusBadRequest {
		b, _ := io.ReadAll(io.LimitReader(res.Body, maxError)) // the code alone is an answer too
		return fmt.Errorf("the cluster's host answered: %s", cmp.Or(strings.TrimSpace(string(b)), res.Status))
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(out); err != nil {
		return fmt.Errorf("reading the answer of the cluster's host: %w", err)
	}
	return nil
}

// wrapNotRunning marks errors that mean that there is no host, or that it ended before it answered.
func wrapNotRunning(err error) error {
	for _, gone := range []error{syscall.ENOENT, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
	}
	return err
}

// WatchTimeout is how long a host holds a Watch at most.
const WatchTimeout = 30 * time.Second
