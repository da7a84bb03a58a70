package allowlist

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// KubeconfigRules are what a kubeconfig of a machine may name. A kubeconfig can do more than name a cluster: run
// programs, read files, send credentials through a proxy.
type KubeconfigRules struct {
	Cluster netip.Prefix            // whose addresses servers must have
	File    func(path string) error // says whether a file may be named; nil: none may
}

// CheckKubeconfig checks all of a kubeconfig, whatever is its current context.
func CheckKubeconfig(b []byte, r KubeconfigRules) error {
	doc, err := readDocument(b)
	if err != nil {
		return err
	}
	return (&checker{}).checkShape("", doc, kubeconfigShape(r))
}

func kubeconfigShape(r KubeconfigRules) shape {
	file := isText(func(_ *checker, v string) error {
		if v == "" {
			return nil
		}
		if r.File == nil {
			return errors.New("names a file; embed its content")
		}
		return r.File(v)
	})
	cluster := shape{
		fields: with(fieldsOf("tls-server-name disable-compression"), map[string]shape{
			"server":                     isText(func(_ *checker, v string) error { return checkServer(v, r.Cluster) }),
			"certificate-authority-data": isText(checkBase64), "certificate-authority": file,
		}),
		why: map[string]string{
			"insecure-skip-tls-verify": "the server must be verified", "proxy-url": whyElse,
		},
		check: requireAuthority,
	}
	user := shape{
		fields: with(fieldsOf("token"), map[string]shape{
			"client-certificate-data": isText(checkBase64), "client-key-data": isText(checkBase64),
			"client-certificate": file, "client-key": file,
		}),
		why: map[string]string{ //nolint:gosec // names of fields
			"exec": whyProgram, "auth-provider": whyProgram, "tokenFile": "it names a file; embed its content",
			"as": "it acts as somebody else", "username": "use a certificate", "password": "use a certificate",
		},
	}
	entry := func(name string, s shape) shape {
		return listOf(shape{fields: with(fieldsOf("name"), map[string]shape{name: s})})
	}
	return shape{fields: with(header, with(fieldsOf("current-context"), map[string]shape{
		"preferences": {fields: map[string]shape{}},
		"clusters":    entry("cluster", cluster), "users": entry("user", user),
		"contexts": entry("context", shape{fields: fieldsOf("cluster user namespace")}),
	}))}
}

// requireAuthority refuses a cluster that any public authority could stand for.
func requireAuthority(_ *checker, value any) error {
	m, _ := value.(map[string]any)
	if m["certificate-authority-data"] == nil && m["certificate-authority"] == nil {
		return errors.New("has no certificate-authority-data")
	}
	return nil
}

func checkBase64(_ *checker, v string) error {
	if _, err := base64.StdEncoding.DecodeString(v); err != nil {
		return errors.New("is not base64")
	}
	return nil
}

// checkServer says whether a server is one of the cluster. Addresses in a kubeconfig stay as they are, so 127.0.0.1
// would be that of the whole computer.
func checkServer(v string, cluster netip.Prefix) error {
	u, err := url.Parse(v)
	if err == nil && u.Scheme == "https" && u.User == nil {
		host, _, splitErr := net.SplitHostPort(u.Host)
		a, parseErr := netip.ParseAddr(host)
		if splitErr == nil && parseErr == nil && cluster.Contains(a) && a != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			return nil
		}
	}
	return fmt.Errorf("is %s, which is not https://ADDRESS:PORT with an address of this cluster", quoteShort(v))
}

// checkKubeconfig checks the kubeconfig of a component.
func checkKubeconfig(c *checker, _ string, b []byte) error {
	return CheckKubeconfig(b, KubeconfigRules{Cluster: c.machine.Cluster})
}
