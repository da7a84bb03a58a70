package measure

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/bench/scenario"
)

// Request is a kind of requests to the plane's API.
type Request struct{ Verb, Group, Resource string }

// Requests counts them. All clients of the plane are in it: the API server does not tell them apart.
type Requests map[Request]int

var labelPattern = regexp.MustCompile(`(\w+)="([^"]*)"`)

// Requests reads how many requests the API server has answered since it started. What is asked all the
// time is left out: watches, which count when they end, leases, and what is no object.
func (p *Plane) Requests(ctx context.Context) (Requests, error) {
	page, err := p.GetPath(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading the figures of the plane: %w", err)
	}
	out := Requests{}
	for line := range bytes.Lines(page) {
		if !bytes.HasPrefix(line, []byte("apiserver_request_total{")) {
			continue
		}
		end := bytes.LastIndexByte(line, '}')
		l := map[string]string{}
		for _, m := range labelPattern.FindAllSubmatch(line[:end], -1) {
			l[string(m[1])] = string(m[2])
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(line[end+1:])), 64)
		if err != nil {
			return nil, err
		}
		if l["resource"] == "" || l["resource"] == "leases" || l["verb"] == "WATCH" || l["dry_run"] != "" {
			continue
		}
		r := Request{Verb: l["verb"], Group: l["group"], Resource: l["resource"]}
		if l["subresource"] != "" {
			r.Resource += "/" + l["subresource"]
		}
		out[r] += int(n)
	}
	return out, nil
}

// GetPath reads what the plane serves under a path.
func (p *Plane) GetPath(ctx context.Context, path string) ([]byte, error) {
	d, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	return d.RESTClient().Get().RequestURI(path).DoRaw(ctx)
}

// Minus is the difference, without those that are zero.
func (r Requests) Minus(d Requests) Requests {
	out := maps.Clone(r)
	for k, n := range d {
		out[k] -= n
	}
	maps.DeleteFunc(out, func(_ Request, n int) bool { return n == 0 })
	return out
}

// Filter keeps the requests for which keep is true.
func (r Requests) Filter(keep func(Request) bool) Requests {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(k Request, _ int) bool { return !keep(k) })
	return out
}

// IsWrite says that a request changes something.
func (r Request) IsWrite() bool { return r.Verb != "GET" && r.Verb != "LIST" }

// IsStackRelated says that a request is about cluster stacks, or what releases bring.
func (r Request) IsStackRelated() bool {
	return r.Group == csv1.GroupVersion.Group || strings.HasPrefix(r.Resource, "clusterclasses") ||
		strings.Contains(r.Resource, "templates")
}

// Total is the number of all requests.
func (r Requests) Total() (n int) {
	for _, m := range r {
		n += m
	}
	return n
}

// Verbs is a short form: how many of each verb.
func (r Requests) Verbs() string {
	by := map[string]int{}
	for k, n := range r {
		by[k.Verb] += n
	}
	var out []string
	for v, n := range by {
		out = append(out, fmt.Sprintf("%s %d", v, n))
	}
	return scenario.JoinFew(out)
}

// List is the long form: how many of each verb and resource.
func (r Requests) List() (out []string) {
	for k, n := range r {
		out = append(out, fmt.Sprintf("%d × %s %s", n, k.Verb, k.Resource))
	}
	return out
}
