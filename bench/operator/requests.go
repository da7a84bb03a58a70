package main

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
)

// request is a kind of requests to the plane's API.
type request struct{ verb, group, resource string }

// requests counts them. All clients of the plane are in it: the API server does not tell them apart.
type requests map[request]int

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// requests reads how many requests the API server has answered since it started. What is asked all the
// time is left out: watches, which count when they end, leases, and what is no object.
func (p *plane) requests(ctx context.Context) (requests, error) {
	d, err := discovery.NewDiscoveryClientForConfig(p.config)
	if err != nil {
		return nil, err
	}
	page, err := d.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the figures of the plane: %w", err)
	}
	out := requests{}
	for line := range bytes.Lines(page) {
		if !bytes.HasPrefix(line, []byte("apiserver_request_total{")) {
			continue
		}
		end := bytes.LastIndexByte(line, '}')
		l := map[string]string{}
		for _, m := range label.FindAllSubmatch(line[:end], -1) {
			l[string(m[1])] = string(m[2])
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(string(line[end+1:])), 64)
		if err != nil {
			return nil, err
		}
		if l["resource"] == "" || l["resource"] == "leases" || l["verb"] == "WATCH" || l["dry_run"] != "" {
			continue
		}
		r := request{verb: l["verb"], group: l["group"], resource: l["resource"]}
		if l["subresource"] != "" {
			r.resource += "/" + l["subresource"]
		}
		out[r] += int(n)
	}
	return out, nil
}

func (r requests) minus(d requests) requests {
	out := maps.Clone(r)
	for k, n := range d {
		out[k] -= n
	}
	maps.DeleteFunc(out, func(_ request, n int) bool { return n == 0 })
	return out
}

func (r requests) of(use func(request) bool) requests {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(k request, _ int) bool { return !use(k) })
	return out
}

func (r request) writes() bool { return r.verb != "GET" && r.verb != "LIST" }

// ours says that a request is about cluster stacks, or what releases bring.
func (r request) ours() bool {
	return r.group == csv1.GroupVersion.Group || strings.HasPrefix(r.resource, "clusterclasses") || strings.Contains(r.resource, "templates")
}

func (r requests) total() (n int) {
	for _, m := range r {
		n += m
	}
	return n
}

// verbs is a short form: how many of each verb.
func (r requests) verbs() string {
	by := map[string]int{}
	for k, n := range r {
		by[k.verb] += n
	}
	var out []string
	for v, n := range by {
		out = append(out, fmt.Sprintf("%s %d", v, n))
	}
	return few(out)
}

// list is the long form.
func (r requests) list() (out []string) {
	for k, n := range r {
		out = append(out, fmt.Sprintf("%d × %s %s", n, k.verb, k.resource))
	}
	return out
}
