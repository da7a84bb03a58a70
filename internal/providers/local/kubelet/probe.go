package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// How often a process is probed, and how long an answer may take.
const (
	probeIntervalNotReady = 100 * time.Millisecond // until it is ready
	probeIntervalReady    = 2 * time.Second        // afterwards
	probeTimeout          = 5 * time.Second
	// probeFailureThreshold is how many failures in a row make a process not ready; one that ended is not at once.
	probeFailureThreshold = 2
	// maxProbeResponse is how much of an answer is read, though nobody looks at it.
	maxProbeResponse = 64 << 10
)

// probe asks a process whether it is ready; without URL there is nothing to ask.
type probe struct{ url string }

// newProbe takes the container's readiness probe, or else its startup or liveness probe, and asks at the machine's own
// address.
func newProbe(pod *corev1.Pod, address netip.Addr) probe {
	c := pod.Spec.Containers[0]
	for _, p := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe, c.LivenessProbe} {
		if p == nil || p.HTTPGet == nil {
			continue
		}
		g := p.HTTPGet
		port := g.Port.IntValue()
		for _, named := range c.Ports {
			if g.Port.Type == intstr.String && named.Name == g.Port.StrVal {
				port = int(named.ContainerPort)
			}
		}
		// Whatever else a manifest says here would be a part of the URL, and could make it one of another server.
		scheme := "http"
		if g.Scheme == corev1.URISchemeHTTPS {
			scheme = "https"
		}
		return probe{url: fmt.Sprintf("%s://%s:%d/%s", scheme, address, port, strings.TrimPrefix(g.Path, "/"))}
	}
	return probe{}
}

// runProbe keeps the pod's readiness up to date until the pod ends.
func (p *staticPod) runProbe() {
	if p.probe.url == "" {
		return // that it runs is all there is to know
	}
	// As a kubelet, we only want to know whether the process answers, not who it is.
	anybody := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	transport := &http.Transport{TLSClientConfig: anybody, MaxIdleConns: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: probeTimeout, Transport: transport}
	failures := 0
	for {
		ok := p.isRunning() && p.probe.succeeds(p.ctx, client)
		failures++
		if ok {
			failures = 0
		}
		if p.ctx.Err() != nil {
			return
		}
		if ok {
			p.markReady()
		} else if failures >= probeFailureThreshold {
			p.setReady(false)
		}
		t := time.NewTimer(p.probeInterval())
		select {
		case <-p.ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

func (p *staticPod) probeInterval() time.Duration {
	if p.isReady() {
		return probeIntervalReady
	}
	return probeIntervalNotReady
}

func (q probe) succeeds(ctx context.Context, c *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url, nil)
	if err != nil {
		return false
	}
	res, err := c.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxProbeResponse)) // so that the connection can be used again
	_ = res.Body.Close()                                                   // the code is the answer
	return res.StatusCode >= 200 && res.StatusCode < 400
}
