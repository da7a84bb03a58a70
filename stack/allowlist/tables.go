package allowlist

import (
	"maps"
	"strings"
)

// components are the lists. The flags are those of Kubernetes 1.37 and etcd 3.7.
var components = map[string]map[string]rule{
	Etcd:              etcdFlags(),
	APIServer:         apiServerFlags(),
	ControllerManager: controllerManagerFlags(),
	Scheduler:         schedulerFlags(),
}

// flags gives several flags the same kind.
func flags(k kind, names string) map[string]rule {
	out := map[string]rule{}
	for _, n := range strings.Fields(names) {
		out[n] = rule{check: k}
	}
	return out
}

// switches are flags that may stand without a value.
func switches(k kind, names string) map[string]rule {
	out := flags(k, names)
	for n, r := range out {
		r.boolean = true
		out[n] = r
	}
	return out
}

func merge(all ...map[string]rule) map[string]rule {
	out := map[string]rule{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// servingFlags are those of all of Kubernetes' components: what they serve and to whom, what they log and emulate. A
// feature gate alone opens no way: what it makes possible needs a flag or a file, and those are checked.
func servingFlags() map[string]rule {
	return merge(
		flags(listenAddress, "bind-address"),
		flags(port, "secure-port"),
		flags(writtenFile, "cert-dir"),
		flags(readFile, "tls-cert-file tls-private-key-file allow-metric-labels-manifest"),
		flags(caFile, "client-ca-file requestheader-client-ca-file"),
		flags(keyPair, "tls-sni-cert-key"),
		flags(number, "http2-max-streams-per-connection v"),
		flags(duration, `log-flush-frequency authentication-token-webhook-cache-ttl
			authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl`),
		switches(boolean, "disable-http2-serving profiling contention-profiling log-text-split-stream"),
		flags(oneOf("text", "json"), "logging-format"),
		flags(plainText, `tls-cipher-suites tls-curve-preferences tls-min-version requestheader-allowed-names
			requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
			requestheader-username-headers feature-gates emulated-version min-compatibility-version
			allow-metric-labels disabled-metrics show-hidden-metrics-for-version vmodule log-text-info-buffer-size`),
	)
}

// clientFlags are those of components that are clients of the API.
func clientFlags() map[string]rule {
	return merge(
		flags(checkedFile(checkKubeconfig), "kubeconfig authentication-kubeconfig authorization-kubeconfig"),
		switches(boolean, "authentication-skip-lookup authentication-tolerate-lookup-failure leader-elect"),
		flags(number, "kube-api-burst kube-api-qps"),
		flags(duration, "leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period"),
		flags(plainText, `kube-api-content-type authorization-always-allow-paths leader-elect-resource-lock
			leader-elect-resource-name leader-elect-resource-namespace`),
	)
}

func apiServerFlags() map[string]rule {
	return merge(servingFlags(), apiServerStoreFlags(), apiServerAuthFlags(), apiServerAuditFlags(),
		flags(plainText, "advertise-address"), // always replaced
		flags(caFile, "kubelet-certificate-authority peer-ca-file"),
		flags(readFile, "kubelet-client-certificate kubelet-client-key proxy-client-cert-file proxy-client-key-file"),
		flags(checkedFile(admission), "admission-control-config-file"),
		switches(boolean, `emulation-forward-compatible runtime-config-emulation-forward-compatible
			shutdown-send-retry-after enable-priority-and-fairness allow-privileged enable-aggregator-routing`),
		switches(must(false, "it would show log files of this computer"), "enable-logs-handler"),
		switches(must(true, "a redirect could lead to any server"), "aggregator-reject-forwarding-redirect"),
		flags(number, `goaway-chance max-mutating-requests-inflight max-requests-inflight min-request-timeout
			default-not-ready-toleration-seconds default-unreachable-toleration-seconds kubernetes-service-node-port
			max-connection-bytes-per-sec`),
		flags(duration, `livez-grace-period request-timeout shutdown-delay-duration
			shutdown-watch-termination-grace-period storage-initialization-timeout event-ttl kubelet-timeout
			coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
			coordinated-leadership-retry-period`),
		flags(plainText, `cors-allowed-origins external-hostname strict-transport-security-directives runtime-config
			enable-admission-plugins disable-admission-plugins admission-control endpoint-reconciler-type
			kubelet-preferred-address-types service-cluster-ip-range service-node-port-range`),
	)
}

func apiServerStoreFlags() map[string]rule {
	return merge(
		flags(clusterURLs(urlRule{schemes: "https", port: clientPort}), "etcd-servers"),
		flags(readFile, "etcd-cafile etcd-certfile etcd-keyfile"),
		flags(checkedFile(encryption), "encryption-provider-config"),
		switches(boolean, "encryption-provider-config-automatic-reload enable-garbage-collector watch-cache"),
		flags(number, "delete-collection-workers lease-reuse-duration-seconds"),
		flags(duration, `etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval
			etcd-healthcheck-timeout etcd-readycheck-timeout`),
		flags(plainText, "etcd-prefix storage-backend storage-media-type watch-cache-sizes"),
	)
}

func apiServerAuthFlags() map[string]rule {
	return merge(
		flags(checkedFile(authentication), "authentication-config"),
		flags(checkedFile(authorization), "authorization-config"),
		flags(noneOf("asks another server", "Webhook"), "authorization-mode"),
		flags(webURL, "oidc-issuer-url"),
		flags(caFile, "oidc-ca-file"),
		flags(readFile, `service-account-key-file service-account-signing-key-file token-auth-file
			authorization-policy-file`),
		switches(boolean, `anonymous-auth enable-bootstrap-token-auth service-account-extend-token-expiration
			service-account-lookup`),
		flags(duration, "service-account-max-token-expiration"),
		flags(plainText, `api-audiences oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-required-claim
			oidc-signing-algs oidc-username-claim oidc-username-prefix service-account-issuer service-account-jwks-uri`),
	)
}

func apiServerAuditFlags() map[string]rule {
	return merge(
		flags(auditLog, "audit-log-path"),
		flags(readFile, "audit-policy-file"),
		switches(boolean, "audit-log-compress audit-log-batch-throttle-enable audit-log-truncate-enabled"),
		flags(number, `audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-batch-buffer-size
			audit-log-batch-max-size audit-log-batch-throttle-burst audit-log-batch-throttle-qps
			audit-log-truncate-max-batch-size audit-log-truncate-max-event-size`),
		flags(duration, "audit-log-batch-max-wait"),
		flags(plainText, "audit-log-format audit-log-mode audit-log-version"),
	)
}

func controllerManagerFlags() map[string]rule {
	return merge(servingFlags(), clientFlags(),
		flags(optionalFile, `cluster-signing-cert-file cluster-signing-key-file
			cluster-signing-kube-apiserver-client-cert-file cluster-signing-kube-apiserver-client-key-file
			cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file
			cluster-signing-kubelet-serving-cert-file cluster-signing-kubelet-serving-key-file
			cluster-signing-legacy-unknown-cert-file cluster-signing-legacy-unknown-key-file`),
		flags(readFile, "service-account-private-key-file"),
		flags(caFile, "root-ca-file"),
		flags(oneOf("", "external"), "cloud-provider"),
		switches(must(false, "it would make folders on this computer"), "enable-hostpath-provisioner"),
		switches(boolean, `allocate-node-cidrs configure-cloud-routes use-service-account-credentials
			disable-attach-detach-reconcile-sync disable-force-detach-on-timeout enable-garbage-collector
			enable-dynamic-provisioning enable-leader-migration`),
		flags(duration, `controller-shutdown-timeout controller-start-interval min-resync-period
			route-reconciliation-period attach-detach-reconcile-sync-period cluster-signing-duration
			endpoint-updates-batch-period endpointslice-updates-batch-period mirroring-endpointslice-updates-batch-period
			horizontal-pod-autoscaler-cpu-initialization-period horizontal-pod-autoscaler-downscale-stabilization
			horizontal-pod-autoscaler-initial-readiness-delay horizontal-pod-autoscaler-sync-period
			legacy-service-account-token-clean-up-period namespace-sync-period node-monitor-grace-period
			node-monitor-period node-startup-grace-period pvclaimbinder-sync-period resource-quota-sync-period`),
		flags(number, `concurrent-deployment-syncs concurrent-disruption-syncs concurrent-device-taint-eviction-syncs
			concurrent-resourceclaim-syncs concurrent-statefulset-syncs concurrent-daemonset-syncs
			concurrent-endpoint-syncs concurrent-service-endpoint-syncs concurrent-ephemeralvolume-syncs
			concurrent-gc-syncs concurrent-horizontal-pod-autoscaler-syncs concurrent-job-syncs concurrent-cron-job-syncs
			concurrent-namespace-syncs concurrent-replicaset-syncs concurrent-rc-syncs concurrent-resource-quota-syncs
			concurrent-serviceaccount-token-syncs concurrent-ttl-after-finished-syncs
			concurrent-validating-admission-policy-status-syncs max-endpoints-per-slice
			mirroring-concurrent-service-endpoint-syncs mirroring-max-endpoints-per-subset
			horizontal-pod-autoscaler-tolerance node-cidr-mask-size node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6
			large-cluster-size-threshold node-eviction-rate secondary-node-eviction-rate unhealthy-zone-threshold
			pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath pv-recycler-minimum-timeout-nfs
			pv-recycler-timeout-increment-hostpath terminated-pod-gc-threshold`),
		flags(plainText, "cidr-allocator-type cluster-cidr cluster-name controllers service-cluster-ip-range"),
	)
}

func schedulerFlags() map[string]rule {
	return merge(servingFlags(), clientFlags(),
		flags(checkedFile(scheduler), "config"),
		flags(duration, "pod-max-in-unschedulable-pods-duration"),
	)
}

func etcdFlags() map[string]rule {
	const whoever = "without certificates whoever reaches the port could read everything"
	return merge(
		flags(word, "name initial-cluster-token"), // the name becomes that of a folder if there is no data-dir
		flags(writtenFile, "data-dir wal-dir"),
		flags(readFile, `cert-file key-file trusted-ca-file peer-cert-file peer-key-file peer-trusted-ca-file
			client-cert-file client-key-file client-crl-file peer-client-cert-file peer-client-key-file peer-crl-file`),
		flags(clusterURLs(urlRule{schemes: "https", own: true}),
			"listen-client-urls listen-client-http-urls listen-peer-urls"),
		flags(clusterURLs(urlRule{schemes: "http https", own: true}), "listen-metrics-urls"),
		flags(clusterURLs(urlRule{schemes: "https", port: clientPort}), "advertise-client-urls"),
		flags(clusterURLs(urlRule{schemes: "https", port: peerPort}), "initial-advertise-peer-urls"),
		flags(memberList, "initial-cluster"),
		flags(oneOf("new", "existing"), "initial-cluster-state"),
		switches(must(true, whoever), "client-cert-auth peer-client-cert-auth"),
		switches(must(false, whoever), "peer-skip-client-san-verification"),
		flags(oneOf("simple"), "auth-token"),
		flags(oneOf("zap"), "logger"),
		flags(oneOf("default", "stdout", "stderr"), "log-outputs"),
		switches(boolean, `initial-election-tick-advance memory-mlock enable-grpc-gateway strict-reconfig-check pre-vote
			enable-pprof unsafe-no-fsync`),
		flags(number, `snapshot-count heartbeat-interval election-timeout max-snapshots max-wals quota-backend-bytes
			backend-batch-limit max-txn-ops max-request-bytes max-concurrent-streams bcrypt-cost auth-token-ttl
			compaction-batch-limit max-learners snapshot-catchup-entries bootstrap-defrag-threshold-megabytes
			self-signed-cert-validity`),
		flags(duration, `backend-batch-interval grpc-keepalive-min-time grpc-keepalive-interval grpc-keepalive-timeout
			raft-read-timeout raft-write-timeout corrupt-check-time compact-hash-check-time
			watch-progress-notify-interval warning-apply-duration warning-unary-request-duration
			compaction-sleep-interval downgrade-check-time`),
		flags(plainText, `backend-bbolt-freelist-type feature-gates auto-compaction-retention auto-compaction-mode
			client-cert-allowed-hostname peer-cert-allowed-cn peer-cert-allowed-hostname cipher-suites cors
			host-whitelist tls-min-version tls-max-version metrics log-level log-format`),
	)
}

// refusalReasons say why flags are refused that people know. The first that fits counts.
var refusalReasons = []struct{ component, prefix, why string }{
	{Etcd, "config-file", "a file would replace all flags"},
	{Etcd, "discovery", "members of a local cluster are found by their addresses"},
	{Etcd, "distributed-tracing", whyElse},
	{Etcd, "enable-distributed-tracing", whyElse},
	{Etcd, "log-rotation", "its log is kept by the machine"},
	{Etcd, "enable-log-rotation", "its log is kept by the machine"},
	{Etcd, "auto-tls", "kubeadm makes its certificates"},
	{Etcd, "peer-auto-tls", "kubeadm makes its certificates"},
	{Etcd, "socket-reuse", "another process could take the port"},
	{Etcd, "force-new-cluster", "it would drop the other members"},
	{"", "permit-", "another process could take the port"},
	{"", "audit-webhook", whyElse},
	{"", "authentication-token-webhook", whyElse},
	{"", "authorization-webhook", whyElse},
	{"", "egress-selector", whySocket},
	{"", "tracing-config", whyElse},
	{"", "debug-socket", "it would open a socket on this computer"},
	{"", "service-account-signing-endpoint", whySocket},
	{"", "etcd-servers-overrides", "a local machine has one store"},
	{"", "peer-advertise", "the machine's address is chosen for it"},
	{"", "master", "the server is that of the kubeconfig"},
	{"", "cloud-config", "a local machine is in no cloud"},
	{"", "external-cloud-volume-plugin", "a local machine is in no cloud"},
	{"", "flex-volume-plugin-dir", whyProgram},
	{"", "pv-recycler-pod-template", "local machines recycle no volumes"},
	{"", "leader-migration-config", "a local machine is in no cloud"},
	{"", "write-config-to", "it would write a file and end"},
	{"", "log-file", "its log is kept by the machine"},
	{"", "log-dir", "its log is kept by the machine"},
	{"", "help", "it would print and end"},
	{"", "version", "it would print and end"},
}
