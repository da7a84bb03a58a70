package main

import (
	"fmt"
	"net"
)

// The programs, by the names bench/plane/run gives them in bin/bench. Those of Cluster API's
// managers are made from their keys in the manifests.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	managerPrefix     = "capi-"
)

var managers = []string{managerPrefix + "core", managerPrefix + "bootstrap", managerPrefix + "control-plane"}

// sameControllers are those of Kubernetes' controllers that polderd runs too.
const sameControllers = "garbage-collector-controller,namespace-controller,resourcequota-controller," +
	"serviceaccount-controller,serviceaccount-token-controller,clusterrole-aggregation-controller"

const featureGates = "ClusterTopology=true,RuntimeSDK=true,MachinePool=true"

func separatePrograms(cfg config) []string {
	var out []string
	for _, name := range append([]string{etcd, apiServer, controllerManager}, managers...) {
		out = append(out, cfg.program("bench/"+name))
	}
	return out
}

// args is the command line of a program.
func (s *separate) args(name string) []string {
	switch name {
	case etcd:
		return s.etcdArgs()
	case apiServer:
		return s.apiServerArgs()
	case controllerManager:
		return s.controllerManagerArgs()
	}
	return s.managerArgs(name)
}

func (s *separate) etcdArgs() []string {
	client, peer := "http://"+s.ports.address(etcd), "http://"+s.ports.address(etcdPeer)
	return []string{
		"--name=bench", "--data-dir=" + s.path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=bench=" + peer,
	}
}

func (s *separate) apiServerArgs() []string {
	return []string{
		"--etcd-servers=http://" + s.ports.address(etcd),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports[apiServer]),
		"--endpoint-reconciler-type=none", // a loopback address is no endpoint for a Service
		"--service-cluster-ip-range=10.0.0.0/24",
		"--cert-dir=" + s.path("apiserver"),
		"--tls-cert-file=" + s.keys.APIServerFile(), "--tls-private-key-file=" + s.keys.APIServerFile(),
		"--token-auth-file=" + s.tokenFile(), "--authorization-mode=RBAC",
		"--service-account-issuer=https://bench.internal",
		"--service-account-key-file=" + s.keys.ServiceAccountKeyFile(),
		"--service-account-signing-key-file=" + s.keys.ServiceAccountKeyFile(),
		"--encryption-provider-config=" + s.keys.EncryptionConfigFile(),
	}
}

func (s *separate) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + s.kubeconfig(admin), "--leader-elect=false", "--secure-port=0",
		"--controllers=" + s.cfg.controllers,
		"--service-account-private-key-file=" + s.keys.ServiceAccountKeyFile(),
	}
}

// managerArgs leaves concurrency and cache sizes at Cluster API's defaults. Its programs have
// no flag for the address webhooks listen at; they listen at all of them while the benchmark runs.
func (s *separate) managerArgs(name string) []string {
	return []string{
		"--kubeconfig=" + s.kubeconfig(name), "--leader-elect=false", "--feature-gates=" + featureGates,
		"--diagnostics-address=0", "--health-addr=0",
		fmt.Sprintf("--webhook-port=%d", s.ports[name]),
		"--webhook-cert-dir=" + s.path("pki"), "--webhook-cert-name=" + certificateName(s),
		"--webhook-key-name=" + certificateName(s),
	}
}

const etcdPeer = "etcd-peer"

// ports are where the programs listen, by name.
type ports map[string]int

// freePorts takes ports that are free now; all are held until the last is found, so that no
// two are the same.
func freePorts() (ports, error) {
	out := ports{}
	for _, name := range append([]string{etcd, etcdPeer, apiServer}, managers...) {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // nothing was accepted
		out[name] = l.Addr().(*net.TCPAddr).Port
	}
	return out, nil
}

func (p ports) address(name string) string { return fmt.Sprintf("127.0.0.1:%d", p[name]) }
func (p ports) url(name string) string     { return "https://" + p.address(name) }
