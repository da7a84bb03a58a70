package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// ErrEndpoint means that the address of a cluster's endpoint cannot be listened on.
var ErrEndpoint = errors.New("the cluster's endpoint cannot be opened")

// endpointDescriptor is the first after the standard ones.
const endpointDescriptor = 3

// openEndpoint listens for a host that is in a network of its own, where nobody could reach it.
func openEndpoint(dir hostapi.Dir) (*os.File, error) {
	b, err := os.ReadFile(dir.ClusterFile())
	if err != nil {
		return nil, err
	}
	var c hostapi.Cluster
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir.ClusterFile(), err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir.ClusterFile(), err)
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(c.Endpoint()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	defer listener.Close() //nolint:errcheck // the file is another descriptor of it
	return listener.File()
}

// TakeEndpoint returns the listener this process, a host, was started with; nil if it can listen itself.
func TakeEndpoint() (net.Listener, error) {
	if !inNamespaces() {
		return nil, nil //nolint:nilnil // none, and no mistake
	}
	f := os.NewFile(endpointDescriptor, "endpoint")
	defer f.Close() //nolint:errcheck // the listener is another descriptor of it
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("taking over the cluster's endpoint: %w", err)
	}
	return l, nil
}
