package allowlist

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// header is what every document begins with.
var header = fieldsOf("apiVersion kind")

// Why things are refused.
const (
	whySocket  = "it would connect to a socket of this computer"
	whyElse    = "it would send data of the cluster elsewhere, or ask another server"
	whyProgram = "it would run a program"
)

// encryption is EncryptionConfiguration: keys are in the file itself.
var encryption = checkDocument("EncryptionConfiguration", shape{fields: with(header, map[string]shape{
	"resources": listOf(shape{fields: with(fieldsOf("resources"), map[string]shape{
		"providers": listOf(shape{
			fields: fieldsOf("aescbc aesgcm secretbox identity"),
			why:    map[string]string{"kms": whySocket},
		}),
	})}),
})})

// authentication is AuthenticationConfiguration. Issuers are asked for their keys with TLS.
var authentication = checkDocument("AuthenticationConfiguration", shape{fields: with(header, map[string]shape{
	"anonymous": anything,
	"jwt": listOf(shape{fields: with(fieldsOf("claimValidationRules claimMappings userValidationRules"), map[string]shape{
		"issuer": {fields: with(fieldsOf("certificateAuthority audiences audienceMatchPolicy"), map[string]shape{
			"url": isText(checkWebURL), "discoveryURL": isText(checkOptionalURL),
		})},
	})}),
})})

func checkWebURL(c *checker, v string) error {
	_, err := webURL(c, v)
	return err
}

func checkOptionalURL(c *checker, v string) error {
	if v == "" {
		return nil
	}
	return checkWebURL(c, v)
}

// authorization is AuthorizationConfiguration without webhooks.
var authorization = checkDocument("AuthorizationConfiguration", shape{fields: with(header, map[string]shape{
	"authorizers": listOf(shape{
		fields: with(fieldsOf("name"), map[string]shape{"type": isText(func(_ *checker, v string) error {
			if !slices.Contains([]string{"Node", "RBAC"}, v) {
				return fmt.Errorf("is %s; use Node or RBAC", quoteShort(v))
			}
			return nil
		})}),
		why: map[string]string{"webhook": whyElse},
	}),
})})

// configurablePlugins are admission plugins whose configuration names no files and no servers.
var configurablePlugins = []string{
	"EventRateLimit", "ExtendedResourceToleration", "PodNodeSelector", "PodSecurity", "PodTolerationRestriction",
	"ResourceQuota",
}

// admission is AdmissionConfiguration.
var admission = checkDocument("AdmissionConfiguration", shape{fields: with(header, map[string]shape{
	"plugins": listOf(shape{fields: with(fieldsOf("configuration"), map[string]shape{
		"name": isText(func(_ *checker, v string) error {
			if !slices.Contains(configurablePlugins, v) {
				return fmt.Errorf("is %s, which is not configured on a local machine; those that are: %s", quoteShort(v),
					strings.Join(configurablePlugins, ", "))
			}
			return nil
		}),
		"path": isText(func(c *checker, v string) error {
			if v == "" {
				return nil
			}
			return c.checkRelative(v, path.Dir(c.file))
		}),
	})}),
})})

// checkRelative checks a file name in a document: the component opens it as it is, so it must be relative to a folder
// of the machine, and stay in it.
func (c *checker) checkRelative(v, dir string) error {
	if !filepath.IsLocal(v) || path.Clean(v) != v {
		return fmt.Errorf("is %s; name a file relative to %s, without a way upwards", quoteShort(v), dir)
	}
	_, err := c.resolvePath(path.Join(dir, v))
	return err
}

// scheduler is KubeSchedulerConfiguration. Its kubeconfig is opened as it is written, with the machine's root as the
// current directory.
var scheduler = checkDocument("KubeSchedulerConfiguration", shape{
	fields: with(header, with(fieldsOf(
		"parallelism leaderElection enableProfiling enableContentionProfiling percentageOfNodesToScore podInitialBackoffSeconds podMaxBackoffSeconds profiles delayCacheUntilActive",
	), map[string]shape{
		"clientConnection": {
			fields: with(fieldsOf("acceptContentTypes contentType qps burst"), map[string]shape{
				"kubeconfig": isText(checkRelativeKubeconfig),
			}),
			check: func(_ *checker, value any) error {
				if m, ok := value.(map[string]any); !ok || m["kubeconfig"] == nil {
					return errors.New("has no kubeconfig; write etc/kubernetes/scheduler.conf")
				}
				return nil
			},
		},
	})),
	why: map[string]string{"extenders": whyElse},
	check: func(_ *checker, value any) error {
		if m, ok := value.(map[string]any); !ok || m["clientConnection"] == nil {
			return errors.New("clientConnection.kubeconfig is missing; write etc/kubernetes/scheduler.conf")
		}
		return nil
	},
})

func checkRelativeKubeconfig(c *checker, v string) error {
	if !filepath.IsLocal(v) || path.Clean(v) != v {
		return fmt.Errorf("is %s; write it without the first slash, as in etc/kubernetes/scheduler.conf", quoteShort(v))
	}
	if _, err := c.resolvePath("/" + v); err != nil {
		return err
	}
	return c.checkContent("/"+v, checkKubeconfig)
}
