package boot

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	etcdutil "k8s.io/kubernetes/cmd/kubeadm/app/util/etcd"
)

// kubeadm finds the members of etcd by annotations of their pods, which an administrator of the workload cluster can
// write, and would connect to whatever they name, without TLS if they say so. memberClient lets only those through that
// are of the cluster.
type memberClient struct {
	kubernetes.Interface
	block netip.Prefix
}

func (c memberClient) CoreV1() typedcorev1.CoreV1Interface {
	return memberCore{c.Interface.CoreV1(), c.block}
}

type memberCore struct {
	typedcorev1.CoreV1Interface
	block netip.Prefix
}

func (c memberCore) Pods(namespace string) typedcorev1.PodInterface {
	return memberPods{c.CoreV1Interface.Pods(namespace), c.block}
}

type memberPods struct {
	typedcorev1.PodInterface
	block netip.Prefix
}

// List fails if a pod names an endpoint that is not one of the cluster.
func (p memberPods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	pods, err := p.PodInterface.List(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		at, ok := pod.Annotations[constants.EtcdAdvertiseClientUrlsAnnotationKey]
		if !ok {
			continue
		}
		if err := checkMemberURL(at, p.block, constants.EtcdListenClientPort); err != nil {
			return nil, fmt.Errorf("pod %s/%s names a member of etcd that is none: %w", pod.Namespace, pod.Name, err)
		}
	}
	return pods, nil
}

// checkMemberURL says whether a URL is that of a member of the cluster's etcd, and nothing else.
func checkMemberURL(at string, block netip.Prefix, port int) error {
	if u, err := url.Parse(at); err == nil && u.Scheme == "https" {
		a, err := netip.ParseAddrPort(u.Host)
		if err == nil && int(a.Port()) == port && block.Contains(a.Addr()) && at == "https://"+u.Host {
			return nil
		}
	}
	return fmt.Errorf("%q is not https://ADDRESS:%d with an address of %s", at, port, block)
}

// checkMembers asks the members of etcd for each other, and refuses those that are not of the cluster: the new member
// would connect to them.
func (m *machine) checkMembers(c kubernetes.Interface) (*etcdutil.Client, error) {
	etcd, err := etcdutil.NewFromCluster(m.memberClient(c), m.configWithHostPaths().CertificatesDir)
	if err != nil {
		return nil, err
	}
	if m.allowEverything {
		return etcd, nil
	}
	for _, e := range etcd.Endpoints {
		if err := checkMemberURL(e, m.cluster.Addresses, constants.EtcdListenClientPort); err != nil {
			return nil, err
		}
	}
	members, err := etcd.ListMembers()
	if err != nil {
		return nil, err
	}
	for _, x := range members {
		if err := checkMemberURL(x.PeerURL, m.cluster.Addresses, constants.EtcdListenPeerPort); err != nil {
			return nil, err
		}
	}
	return etcd, nil
}

// memberClient bounds a client for kubeadm's search for members.
func (m *machine) memberClient(c kubernetes.Interface) kubernetes.Interface {
	if m.allowEverything {
		return c
	}
	return memberClient{c, m.cluster.Addresses}
}
