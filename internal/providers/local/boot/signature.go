package boot

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
)

// maxClusterInfo bounds what is read from a server that is not trusted yet.
const maxClusterInfo = 1 << 20

// waitForSignature waits until the cluster's public information is signed with the token, which
// takes the cluster some tenths of a second after the token was made. kubeadm looks for itself,
// but only every five seconds. Nothing that is read here is believed: who the cluster is, kubeadm
// finds out afterwards, and if this fails, kubeadm says why.
func waitForSignature(ctx context.Context, t *kubeadmapi.BootstrapTokenDiscovery) {
	if t == nil {
		return
	}
	id, _, _ := strings.Cut(t.Token, ".")
	// The CA is what is being asked for, so the server cannot be verified yet.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	_ = wait.PollUntilContextTimeout(ctx, pollInterval, time.Minute, true, func(ctx context.Context) (bool, error) {
		return isClusterInfoSigned(ctx, c, "https://"+t.APIServerEndpoint, id), nil
	})
}

func isClusterInfoSigned(ctx context.Context, c *http.Client, server, tokenID string) bool {
	url := server + "/api/v1/namespaces/kube-public/configmaps/" + bootstrapapi.ConfigMapClusterInfo
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := c.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	var info struct {
		Data map[string]string `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxClusterInfo)).Decode(&info); err != nil {
		return false
	}
	return info.Data[bootstrapapi.JWSSignatureKeyPrefix+tokenID] != ""
}
