package apiserver

import (
	"maps"
	"regexp"

	openapicommon "k8s.io/kube-openapi/pkg/common"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// unservedGroups are groups of Kubernetes that need pods and nodes, and configuration files of its programs.
// Their OpenAPI definitions would stay in memory for good.
var unservedGroups = regexp.MustCompile(
	`^io\.k8s\.(api\.(apps|autoscaling|batch|discovery|extensions|imagepolicy|lifecycle|networking|node|policy|resource|scheduling|storage|storagemigration)|kubelet|kube-controller-manager|kube-proxy|kube-scheduler|cloud-provider|controller-manager|metrics)\.`,
)

// openAPIDefinitions returns the definitions of the built-in kinds that are served here.
func openAPIDefinitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	all := generatedopenapi.GetOpenAPIDefinitions(ref)
	maps.DeleteFunc(all, func(name string, _ openapicommon.OpenAPIDefinition) bool {
		return unservedGroups.MatchString(name)
	})
	return all
}
