package logging

import (
	"log/slog"
	"slices"
	"strings"
)

// noise lists what libraries report at warning or error level though nothing is wrong in a plane like ours. Each
// line says why it may be dropped; at debug nothing of it is missing.
var noise = []string{
	"Unable to authenticate the request",               // Kubernetes; whoever asked has been told, and it is counted
	"rejected by webhook",                              // Kubernetes; whoever asked has been told
	"Error while syncing ConfigMap",                    // Kubernetes; its namespace is being made at the same time
	"Failed to ensure lease exists, will retry",        // Kubernetes; its namespace is being made at the same time
	"The manifest file is empty, ignoring",             // Kubernetes; there are no static admission manifests
	"because it has no resources",                      // Kubernetes; about alpha and beta versions of its kinds
	"Running http and grpc server on single port",      // etcd; on a socket that only we open
	"simple token is not cryptographically signed",     // etcd; there are no etcd users, so no tokens
	"setting up serving from embedded etcd failed",     // etcd; said at each stop; a real failure also ends the component
	"stopping insecure grpc server due to error",       // etcd; said at each stop
	"stopped insecure grpc server due to error",        // etcd; said at each stop
	"grpc: addrConn.createTransport failed to connect", // Kubernetes' etcd client while the store stops
	// Cluster API, every few seconds for each cluster that does not answer; the Cluster's condition RemoteConnectionProbe
	// says it
	"Connect failed",
}

// noisyErrors are errors that are only consequences of others, each by texts that it contains in this order.
var noisyErrors = [][]string{
	{"connection to the workload cluster is down"}, // as above
	// Kubernetes; whatever it wanted to delete is gone already
	{"error syncing item &garbagecollector.node", `" not found`},
}

func isNoise(r slog.Record) bool {
	for _, n := range noise {
		if strings.Contains(r.Message, n) {
			return true
		}
	}
	noisy := false
	r.Attrs(func(a slog.Attr) bool {
		noisy = a.Key == "err" && slices.ContainsFunc(noisyErrors,
			func(parts []string) bool { return containsAll(a.Value.String(), parts) })
		return !noisy
	})
	return noisy
}

// containsAll says whether a text has all parts, one after the other.
func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}
