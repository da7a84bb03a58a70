package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// checkPrefix begins the names of polderd's own checks of /readyz.
const checkPrefix = "polder-"

// maxReadyz bounds what is read of an answer that has a few dozen lines.
const maxReadyz = 64 << 10

// FailingComponents asks the running API which components do not serve at this moment. An error means that the
// API gave no answer.
func (p *Plane) FailingComponents(ctx context.Context) (failing map[string]bool, err error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return nil, err
	}
	cfg.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/readyz?verbose", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without method and URL
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return nil, fmt.Errorf("it refuses the kubeconfig (%s)", res.Status)
	}
	return parseReadyz(io.LimitReader(res.Body, maxReadyz))
}

// parseReadyz reads lines like "[-]polder-etcd failed: reason withheld".
func parseReadyz(r io.Reader) (map[string]bool, error) {
	failing := map[string]bool{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, _, _ := strings.Cut(strings.TrimPrefix(s.Text(), "[-]"), " ")
		if strings.HasPrefix(s.Text(), "[-]") {
			failing[strings.TrimPrefix(name, checkPrefix)] = true
		}
	}
	return failing, s.Err()
}
