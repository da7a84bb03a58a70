package conformance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

func kubeconfigChecks() []check {
	return []check{
		{
			name: "kubeconfig/refused", run: checkKubeconfigRefused,
			shows: "a kubeconfig of no cluster is 404, and one of an unknown role or for longer than eight hours is refused with 422",
		},
		{
			name: "kubeconfig/made", run: checkKubeconfig, ready: true,
			shows: "without certificateRequest there is a key in the kubeconfig; with one, the certificate is for that key and no key is sent",
		},
		{
			name: "kubeconfig/role", run: checkKubeconfigRole, ready: true, needs: []Role{Viewer},
			shows: "the role viewer is another user of the cluster than admin, and viewers of the tenant are not given admin (403)",
		},
	}
}

// access is a kubeconfig as it is answered, and what is in it.
type access struct {
	Kubeconfig, Certificate, CertificateAuthority, Endpoint string
	ExpirationTime                                          time.Time

	leaf *x509.Certificate
	file struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct {
			User struct {
				Certificate string `json:"client-certificate-data"`
				Key         string `json:"client-key-data"`
			}
		}
	}
	at time.Time // by the clock of the server
}

const shortest = 600 // seconds

func kubeconfigOf(cluster string, body map[string]any) request {
	return request{op: "create-kubeconfig", cluster: cluster, body: asJSON(body), kind: typeJSON}
}

func checkKubeconfigRefused(ctx context.Context, s *session) error {
	none := kubeconfigOf(s.prefix+"-none", map[string]any{})
	if _, err := s.want(ctx, none, http.StatusNotFound); err != nil {
		return err
	}
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	for _, body := range []map[string]any{
		{"role": "god"}, {"expirationSeconds": shortest - 1}, {"expirationSeconds": 28801}, {"noSuchField": 1},
	} {
		if _, err := s.want(ctx, kubeconfigOf(c.Name, body), http.StatusUnprocessableEntity); err != nil {
			return fmt.Errorf("%v: %w", body, err)
		}
	}
	return nil
}

// getAccess gets a kubeconfig, and is an error unless its parts fit together.
func (s *session) getAccess(ctx context.Context, q request) (*access, error) {
	a, err := s.want(ctx, q, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	k := &access{}
	if err := a.read(k); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal([]byte(k.Kubeconfig), &k.file); err != nil {
		return nil, fmt.Errorf("the kubeconfig is no YAML: %w", err)
	}
	if k.leaf, err = readCertificate(k.Certificate); err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	if _, err := readCertificate(k.CertificateAuthority); err != nil {
		return nil, fmt.Errorf("the certificateAuthority cannot be read: %w", err)
	}
	if k.at, err = http.ParseTime(a.header.Get("Date")); err != nil {
		return nil, errors.New("the answer has no Date, which says from when the certificate is valid")
	}
	switch {
	case len(k.file.Clusters) != 1 || len(k.file.Users) != 1:
		return nil, fmt.Errorf("the kubeconfig has %d clusters and %d users, not one of each", len(k.file.Clusters), len(k.file.Users))
	case k.file.Clusters[0].Cluster.Server != k.Endpoint:
		return nil, fmt.Errorf("the kubeconfig is for %q, and the endpoint is %q", k.file.Clusters[0].Cluster.Server, k.Endpoint)
	case !k.sameCertificate():
		return nil, errors.New("the certificate in the kubeconfig is not the one beside it")
	}
	return k, nil
}

func readCertificate(text string) (*x509.Certificate, error) {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return nil, errors.New("it is no PEM")
	}
	return x509.ParseCertificate(b.Bytes)
}

func (k *access) sameCertificate() bool {
	b, err := base64.StdEncoding.DecodeString(k.file.Users[0].User.Certificate)
	return err == nil && bytes.Equal(bytes.TrimSpace(b), bytes.TrimSpace([]byte(k.Certificate)))
}

// checkEnd is an error unless access ends when it was asked to.
func (k *access) checkEnd(seconds int) error {
	const slack = 2 * time.Minute
	ends := k.at.Add(time.Duration(seconds) * time.Second)
	if k.ExpirationTime.Sub(k.leaf.NotAfter).Abs() > slack || k.leaf.NotAfter.After(ends.Add(slack)) ||
		k.leaf.NotAfter.Before(ends.Add(-slack)) {
		return fmt.Errorf("access for %d seconds at %s is to end then; expirationTime is %s, and the certificate ends %s", seconds,
			k.at.UTC().Format(time.RFC3339), k.ExpirationTime.Format(time.RFC3339), k.leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

func checkKubeconfig(ctx context.Context, s *session) error {
	c, err := s.make(ctx, running)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, c.Name); err != nil {
		return err
	}
	k, err := s.getAccess(ctx, kubeconfigOf(c.Name, map[string]any{"role": "admin", "expirationSeconds": shortest}))
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(k.file.Users[0].User.Key)
	if err != nil {
		return fmt.Errorf("the key in the kubeconfig cannot be read: %w", err)
	}
	if _, err := tls.X509KeyPair([]byte(k.Certificate), key); err != nil {
		return fmt.Errorf("the key in the kubeconfig is not that of its certificate: %w", err)
	}
	if err := k.checkEnd(shortest); err != nil {
		return err
	}
	return s.checkOwnKey(ctx, c.Name)
}

// checkOwnKey asks for a certificate of a key that the server never sees.
func (s *session) checkOwnKey(ctx context.Context, cluster string) error {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "conformance"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, own)
	if err != nil {
		return err
	}
	asked := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	k, err := s.getAccess(ctx, kubeconfigOf(cluster, map[string]any{"role": "admin", "certificateRequest": asked}))
	if err != nil {
		return err
	}
	if !own.PublicKey.Equal(k.leaf.PublicKey) {
		return errors.New("the certificate is for another key than that of the certificateRequest")
	}
	if k.file.Users[0].User.Key != "" {
		return errors.New("the kubeconfig has a key, though a certificateRequest was sent")
	}
	wrong := kubeconfigOf(cluster, map[string]any{"certificateRequest": "none"})
	_, err = s.want(ctx, wrong, http.StatusUnprocessableEntity)
	return err
}

func checkKubeconfigRole(ctx context.Context, s *session) error {
	c, err := s.make(ctx, running)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, c.Name); err != nil {
		return err
	}
	admin, err := s.getAccess(ctx, kubeconfigOf(c.Name, map[string]any{"role": "admin"}))
	if err != nil {
		return err
	}
	for _, body := range []map[string]any{{}, {"role": "viewer"}} {
		viewer, err := s.getAccess(ctx, kubeconfigOf(c.Name, body))
		if err != nil {
			return err
		}
		if sameUser(admin.leaf.Subject, viewer.leaf.Subject) {
			return fmt.Errorf("for the cluster the certificates of roles admin and viewer are the same user: groups %q",
				viewer.leaf.Subject.Organization)
		}
	}
	_, err = s.want(ctx, kubeconfigOf(c.Name, map[string]any{"role": "admin"}).by(Viewer), http.StatusForbidden)
	return err
}

// sameUser says that Kubernetes gives the same rights to two certificates: to their groups, or to one user without any.
func sameUser(a, b pkix.Name) bool {
	x, y := slices.Sorted(slices.Values(a.Organization)), slices.Sorted(slices.Values(b.Organization))
	return slices.Equal(x, y) && (len(x) > 0 || a.CommonName == b.CommonName)
}
