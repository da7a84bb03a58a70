package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// send sends a request without a body to the running plane, as its administrator. The caller closes the answer.
func (p *Plane) send(ctx context.Context, method, path string, timeout time.Duration) (*http.Response, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return nil, err
	}
	cfg.Timeout = timeout
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without method and URL
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return nil, errors.Join(fmt.Errorf("it refuses the kubeconfig (%s)", res.Status), res.Body.Close())
	}
	return res, nil
}
