package allowlist

import (
	"net/netip"
	"strings"
	"testing"
)

var testMachine = Machine{Address: netip.MustParseAddr("127.3.16.11"), Cluster: netip.MustParsePrefix("127.3.16.0/20"), Root: "/data/m"}

// Every flag has a kind that can be checked without a machine's files, and takes no control characters.
func TestEveryFlagIsChecked(t *testing.T) {
	for component, rules := range components {
		if len(rules) < 50 {
			t.Errorf("%s has %d flags", component, len(rules))
		}
		for name := range rules {
			for _, hostile := range []string{"a\nb", "unix:///x", "\x00"} {
				f, refused := testMachine.ResolveFlag(component, name, hostile)
				if len(refused) == 0 && strings.ContainsAny(f.Value, "\n\x00") {
					t.Errorf("%s --%s takes %q", component, name, hostile)
				}
			}
			if refused := refusalReason(component, name); !strings.Contains(refused, "not on the list") && !strings.HasPrefix(name, "authentication-token-webhook-cache") &&
				!strings.HasPrefix(name, "authorization-webhook-cache") {
				t.Errorf("%s --%s is allowed and has a reason why it is refused: %s", component, name, refused)
			}
		}
	}
}

// Flags that sensible stacks use.
func TestUsualFlags(t *testing.T) {
	for component, args := range map[string][]string{
		APIServer: {
			"--audit-log-path=/var/log/kubernetes/audit.log", "--audit-log-maxage=30", "--audit-policy-file=/etc/kubernetes/policy.yaml", "--event-ttl=24h",
			"--oidc-issuer-url=https://login.example.org", "--oidc-client-id=x", "--oidc-required-claim=a=b", "--feature-gates=A=true,kube:B=false",
			"--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "--tls-min-version=VersionTLS13", "--enable-admission-plugins=NodeRestriction", "--request-timeout=2m",
			"--service-account-issuer=https://a", "--service-account-issuer=https://b", "--anonymous-auth=false", "--goaway-chance=0.001", "--max-requests-inflight=800",
			"--default-not-ready-toleration-seconds=30", "--runtime-config=api/all=true", "--watch-cache-sizes=pods#100", "--v=2", "--logging-format=json",
		},
		ControllerManager: {
			"--terminated-pod-gc-threshold=500", "--horizontal-pod-autoscaler-sync-period=15s", "--horizontal-pod-autoscaler-tolerance=0.1", "--node-monitor-grace-period=40s",
			"--cluster-signing-duration=8760h", "--controllers=*,bootstrapsigner,-ttl", "--bind-address=0.0.0.0", "--allocate-node-cidrs", "--cloud-provider=external",
		},
		Scheduler: {"--profiling=false", "--kube-api-qps=50", "--leader-elect-lease-duration=15s"},
		Etcd: {
			"--quota-backend-bytes=8589934592", "--auto-compaction-mode=periodic", "--auto-compaction-retention=8h", "--snapshot-count=10000", "--heartbeat-interval=250",
			"--election-timeout=2500", "--listen-metrics-urls=http://0.0.0.0:2381", "--data-dir=/var/lib/etcd", "--max-request-bytes=10485760", "--metrics=extensive",
		},
	} {
		flags, refused := testMachine.Resolve(component, args)
		if len(refused) > 0 || len(flags) != len(args) {
			t.Errorf("%s: %d of %d, %v", component, len(flags), len(args), refused)
		}
	}
}

func TestAddressesOfTheMachine(t *testing.T) {
	for in, want := range map[string]string{
		"https://127.0.0.1:2379": "https://127.3.16.11:2379", "https://localhost:2379": "https://127.3.16.11:2379", "https://[::1]:2379": "https://127.3.16.11:2379",
		"https://127.3.16.12:2379": "https://127.3.16.12:2379", "https://127.3.32.12:2379": "", "https://127.0.0.11:2379": "", "https://example.org:2379": "",
		"https://127.0.0.1:2379/x": "", "https://x@127.0.0.1:2379": "", "": "", "https://127.0.0.1": "", "unix://127.0.0.1:2379": "", "HTTPS://127.0.0.1:2379": "",
	} {
		f, refused := testMachine.ResolveFlag(APIServer, "etcd-servers", in)
		if (want == "") != (len(refused) > 0) || want != "" && f.Value != want {
			t.Errorf("%q: %q, %v; want %q", in, f.Value, refused, want)
		}
	}
}

func TestPathsOfTheMachine(t *testing.T) {
	m := testMachine
	m.Mounts = []Mount{{"/logs/deep", "/srv/deep"}, {"/logs", "/etc/kubernetes"}, {"/ca", "/etc/ssl/certs"}}
	for in, want := range map[string]string{
		"/a/b": "/data/m/a/b", "a": "/data/m/a", "../../a": "/data/m/a", "/logs/deep/x": "/data/m/srv/deep/x", "/logs/x": "/data/m/etc/kubernetes/x",
		"/logs/../x": "/data/m/x", "/logsx": "/data/m/logsx", "/ca/x": "/etc/ssl/certs/x", "/etc/ssl/certs/x": "/etc/ssl/certs/x",
		"/etc/ssl/certsx": "/data/m/etc/ssl/certsx", "/ca/../../../x": "/data/m/x", "": "", "file:///x": "", "unix:///x": "",
	} {
		f, refused := m.ResolveFlag(APIServer, "oidc-ca-file", in)
		if (want == "") != (len(refused) > 0) || want != "" && f.Value != want {
			t.Errorf("%q: %q, %v; want %q", in, f.Value, refused, want)
		}
	}
}
