package apiserver

import (
	"context"
	"fmt"
	"net"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
	certapproval "k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest"
	certsigning "k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	certsubject "k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	"github.com/polder-kaas/polder/internal/plane/audit"
	"github.com/polder-kaas/polder/internal/plane/tenantplanes"
)

// Issuer is in every service-account token. Changing it makes all of them invalid.
const Issuer = "https://polder.internal"

// admissionPlugins are the plugins of Kubernetes that make sense without pods and nodes.
func admissionPlugins() sets.Set[string] {
	return sets.New(
		lifecycle.PluginName,
		serviceaccount.PluginName,
		mutatingwebhook.PluginName,
		validatingwebhook.PluginName,
		mutatingpolicy.PluginName,
		validatingpolicy.PluginName,
		resourcequota.PluginName,
		certapproval.PluginName,
		certsigning.PluginName,
		certsubject.PluginName,
		ctbattest.PluginName,
	)
}

// completeOptions turns our configuration into that of Kubernetes.
func (c Config) completeOptions(ctx context.Context) (options.CompletedOptions, error) {
	var none options.CompletedOptions
	// Feature gates keep their defaults; they are final from here on.
	if err := compatibility.DefaultComponentGlobalsRegistry.Set(); err != nil {
		return none, fmt.Errorf("setting feature gates: %w", err)
	}
	o, err := c.adjustOptions(c.newOptions()).Complete(ctx, nil, nil)
	if err != nil {
		return none, fmt.Errorf("completing options: %w", err)
	}
	if errs := o.Validate(); len(errs) > 0 {
		return none, fmt.Errorf("checking options: %w", utilerrors.NewAggregate(errs))
	}
	return o, nil
}

func (c Config) newOptions() *options.Options {
	o := options.NewOptions()
	o.SecureServing.Listener = c.Listener
	if addr, ok := c.Listener.Addr().(*net.TCPAddr); ok {
		o.SecureServing.BindAddress, o.SecureServing.BindPort = addr.IP, addr.Port
	}
	// Certificate and key are one file, so that a renewal is seen as a whole.
	o.SecureServing.ServerCert.CertKey.CertFile = c.Certificate
	o.SecureServing.ServerCert.CertKey.KeyFile = c.Certificate
	o.Etcd.StorageConfig.Transport.ServerList = []string{c.Etcd}
	o.Etcd.EncryptionProviderConfigFilepath = c.EncryptionConfig

	o.Authentication.ClientCert.ClientCA = c.ClientCA
	o.Authentication.AuthenticationConfigFile = c.AuthConfig
	if c.FrontAuthority != "" {
		h := o.Authentication.RequestHeader
		h.ClientCAFile, h.AllowedNames = c.FrontAuthority, []string{tenantplanes.FrontName}
		h.UsernameHeaders, h.UIDHeaders = []string{"X-Remote-User"}, []string{"X-Remote-Uid"}
		h.GroupHeaders, h.ExtraHeaderPrefixes = []string{"X-Remote-Group"}, []string{"X-Remote-Extra-"}
	}
	o.Authentication.ServiceAccounts.KeyFiles = []string{c.SAKey}
	o.Authentication.ServiceAccounts.Issuers = []string{Issuer}
	o.Authentication.ServiceAccounts.OptionalTokenGetter = newTokenGetter
	o.ServiceAccountSigningKeyFile = c.SAKey
	o.Authorization.Modes = []string{modes.ModeRBAC}
	o.Admission.GenericAdmission.DefaultOffPlugins = sets.New(kubeoptions.AllOrderedPlugins...).Difference(
		admissionPlugins(),
	)

	o.Audit.PolicyFile = c.AuditPolicy
	o.Audit.LogOptions.Path = c.AuditLog
	o.Audit.LogOptions.MaxSize, o.Audit.LogOptions.MaxBackups = audit.MaxSizeMB, audit.MaxFiles
	o.Audit.LogOptions.Compress = true

	o.Features.EnableProfiling = c.Profiling
	// An open watch would otherwise delay the stop by a minute.
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = 2 * time.Second
	return o
}
