package foreign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"time"

	"sigs.k8s.io/yaml"
)

// makeAuthority makes the one that signs access to all clusters.
func (s *Server) makeAuthority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foreign"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	s.caKey = key
	s.ca, err = x509.ParseCertificate(der)
	return err
}

func asPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (s *Server) createKubeconfig(c *call) (*reply, *problem) {
	in := struct {
		Role               string `json:"role"`
		ExpirationSeconds  int64  `json:"expirationSeconds"`
		CertificateRequest string `json:"certificateRequest"`
	}{Role: "viewer", ExpirationSeconds: 28800}
	if p := readJSON(c, &in); p != nil {
		return nil, p
	}
	found, p := c.find()
	switch {
	case p != nil:
		return nil, p
	case in.Role != "admin" && in.Role != "viewer":
		return nil, wrongField("role", "write admin or viewer")
	case in.ExpirationSeconds < 600 || in.ExpirationSeconds > 28800:
		return nil, wrongField("expirationSeconds", "write 600 to 28800")
	case in.Role == "admin" && c.user.role == "viewer" && !s.is(RoleIgnored):
		return nil, problemf(http.StatusForbidden, "viewers may not be admin of a cluster")
	case found.Status.Endpoint == "":
		return nil, problemf(http.StatusConflict, "the cluster has no API yet")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, problemf(http.StatusInternalServerError, "%v", err)
	}
	var public any = key.Public()
	if in.CertificateRequest != "" {
		b, _ := pem.Decode([]byte(in.CertificateRequest))
		if b == nil {
			return nil, wrongField("certificateRequest", "it is no PEM")
		}
		request, err := x509.ParseCertificateRequest(b.Bytes)
		if err != nil || request.CheckSignature() != nil {
			return nil, wrongField("certificateRequest", "it is no certificate request")
		}
		public = request.PublicKey
		if !s.is(KeySent) {
			key = nil
		}
	}
	if s.is(RoleIgnored) {
		in.Role = "admin"
	}
	ends := time.Now().Add(time.Duration(in.ExpirationSeconds) * time.Second).UTC().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(s.next()), Subject: pkix.Name{CommonName: c.user.name, Organization: []string{"foreign:" + in.Role}},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: ends, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, public, s.caKey)
	if err != nil {
		return nil, problemf(http.StatusInternalServerError, "%v", err)
	}
	return s.kubeconfigReply(found, asPEM("CERTIFICATE", der), key, ends)
}

func (s *Server) kubeconfigReply(c *cluster, certificate []byte, key *ecdsa.PrivateKey, ends time.Time) (*reply, *problem) {
	authority := asPEM("CERTIFICATE", s.ca.Raw)
	user := map[string]any{"client-certificate-data": certificate}
	if key != nil {
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, problemf(http.StatusInternalServerError, "%v", err)
		}
		user["client-key-data"] = asPEM("EC PRIVATE KEY", der)
	}
	file, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": c.Status.Endpoint, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "u", "user": user}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	if err != nil {
		return nil, problemf(http.StatusInternalServerError, "%v", err)
	}
	return &reply{status: http.StatusCreated, body: map[string]any{
		"kubeconfig": string(file), "certificate": string(certificate), "certificateAuthority": string(authority),
		"endpoint": c.Status.Endpoint, "expirationTime": ends,
	}}, nil
}
