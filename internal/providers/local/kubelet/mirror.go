package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/internal/apierror"
)

// mirror shows the machine's static pods to the cluster.
type mirror struct {
	kubelet *Kubelet
	client  kubernetes.Interface
	node    *corev1.Node
	store   cache.Store // mirror pods of the node, by namespace and name
}

// syncUntilDone keeps the mirror pods in step with the processes until ctx ends. A worker has no mirror pods.
func (m *mirror) syncUntilDone(ctx context.Context) error {
	if !m.kubelet.cfg.Machine.ControlPlane {
		m.setSynced(true)
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, err := m.startInformer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	retry := newBackoff()
	for {
		err := m.sync(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.kubelet.setProblem("node", err)
		if err != nil {
			if !retry.wait(ctx) {
				return nil
			}
			continue
		}
		retry = newBackoff()
		t := time.NewTimer(mirrorResyncInterval)
		select {
		case <-ctx.Done():
		case <-m.kubelet.mirrorTrigger:
		case <-t.C:
		}
		t.Stop()
	}
}

// startInformer watches the pods of the node, so that a mirror pod that somebody deletes comes back.
func (m *mirror) startInformer(ctx context.Context) (stop func(), err error) {
	only := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", m.node.Name).String()
	})
	f := informers.NewSharedInformerFactoryWithOptions(m.client, 0, only, informers.WithNamespace(metav1.NamespaceSystem))
	i := f.Core().V1().Pods().Informer()
	poke := func(any) { m.kubelet.triggerMirrorSync() }
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: poke,
		UpdateFunc: func(_, o any) { poke(o) }}); err != nil {
		return nil, err
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) && ctx.Err() == nil {
		return nil, errors.New("reading the node's pods")
	}
	m.store = i.GetStore()
	return f.Shutdown, nil
}

func (k *Kubelet) triggerMirrorSync() {
	select {
	case k.mirrorTrigger <- struct{}{}:
	default:
	}
}

func (m *mirror) setSynced(ok bool) {
	if k := m.kubelet; k.node.Swap(&nodeState{synced: ok}).synced != ok {
		k.cfg.OnChange()
	}
}

// sync writes the mirror pods that differ and deletes those whose static pod is gone.
func (m *mirror) sync(ctx context.Context) error {
	want := map[string]*staticPod{}
	var errs []error
	for _, p := range m.kubelet.pods.list() {
		name := p.name() + "-" + m.node.Name
		want[name] = p
		errs = append(errs, m.syncPod(ctx, name, p))
	}
	for _, o := range m.store.List() {
		if have := o.(*corev1.Pod); have.Annotations[corev1.MirrorPodAnnotationKey] != "" && want[have.Name] == nil {
			errs = append(errs, m.deletePod(ctx, have))
		}
	}
	err := errors.Join(errs...)
	m.setSynced(err == nil)
	return err
}

func (m *mirror) syncPod(ctx context.Context, name string, p *staticPod) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	hash := manifestHash(p.manifest.raw)
	var have *corev1.Pod
	if o, ok, _ := m.store.GetByKey(metav1.NamespaceSystem + "/" + name); ok {
		have = o.(*corev1.Pod)
		if have.DeletionTimestamp != nil || have.Annotations[corev1.MirrorPodAnnotationKey] != hash {
			// Always an error: the next sync must come soon, and makes the pod once the informer has seen the deletion.
			return errors.Join(m.deletePod(ctx, have), fmt.Errorf("mirror pod %s is made anew", name))
		}
	}
	if have == nil {
		made, err := m.client.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, m.newMirrorPod(name, hash, p),
			metav1.CreateOptions{})
		// The informer may not have seen yet what an earlier sync made.
		if apierrors.IsAlreadyExists(err) {
			made, err = m.client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		}
		if err != nil {
			return fmt.Errorf("mirror pod %s: %w", name, err)
		}
		have = made
	}
	status := podStatus(have, p, m.kubelet.cfg.Address.String(), m.kubelet.cfg.Clock.Now())
	if sameStatus(have.Status, status) {
		return nil
	}
	have = have.DeepCopy()
	have.Status = status
	if _, err := m.client.CoreV1().Pods(metav1.NamespaceSystem).UpdateStatus(ctx, have,
		metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of mirror pod %s: %w", name, err)
	}
	return nil
}

func (m *mirror) deletePod(ctx context.Context, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	o := metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	}
	err := m.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, o)
	if apierror.IgnoreObjectNotFound(err, "pods", p.Name) == nil {
		return nil
	}
	return fmt.Errorf("removing mirror pod %s: %w", p.Name, err)
}

// newMirrorPod is the mirror of a static pod: the manifest, marked as a kubelet marks it.
func (m *mirror) newMirrorPod(name, hash string, p *staticPod) *corev1.Pod {
	out := p.manifest.pod.DeepCopy()
	out.Name, out.Namespace, out.Status = name, metav1.NamespaceSystem, corev1.PodStatus{}
	for k, v := range map[string]string{
		corev1.MirrorPodAnnotationKey: hash, "kubernetes.io/config.hash": hash, "kubernetes.io/config.source": "file",
		"kubernetes.io/config.seen": m.kubelet.cfg.Clock.Now().UTC().Format(time.RFC3339),
	} {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, k, v)
	}
	out.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: m.node.Name, UID: m.node.UID, Controller: ptr.To(true)},
	}
	out.Spec.NodeName = m.node.Name
	out.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	return out
}

func manifestHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
