package clusterstackrelease

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/render"
)

const parameterClass = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: c}
spec:
  controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: c}}
  patches:
    - name: p
      definitions:
        - selector: {kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec/files, valueFrom: {variable: level}}]
  variables:
    - {name: level, required: true, schema: {openAPIV3Schema: {type: string, enum: [a, b], default: a, description: How strict.}}}
    - name: proxy
      schema: {openAPIV3Schema: {type: object, required: [host], properties: {host: {type: string, maxLength: 9}}}}
`

func renderedObjects(text string) []render.Object {
	return render.ParseObjects([]render.File{{Path: "c.yaml", Text: text}}).Objects
}

func TestDescribeParameters(t *testing.T) {
	want := []csv1.Parameter{
		{Name: "level", Type: "string", Required: true, Default: `"a"`, Allowed: `"a", "b"`, Description: "How strict.", Replaces: csv1.ReplacesControlPlane},
		{Name: "proxy", Type: "object", Replaces: csv1.ReplacesNone},
		{Name: "proxy.host", Type: "string", Required: true, Allowed: "at most 9 characters", Replaces: csv1.ReplacesNone},
	}
	if d := cmp.Diff(want, describeParameters(renderedObjects(parameterClass))); d != "" {
		t.Error(d)
	}
}

// However much a class has, its status stays small.
func TestDescribeParametersIsBounded(t *testing.T) {
	text := parameterClass
	for i := range 2 * csv1.MaxReleaseParameters {
		text += fmt.Sprintf("    - {name: v%d, schema: {openAPIV3Schema: {type: string, default: %s, description: %[2]s}}}\n", i, strings.Repeat("ü", 600))
	}
	all := describeParameters(renderedObjects(text))
	if len(all) != csv1.MaxReleaseParameters {
		t.Errorf("there are %d", len(all))
	}
	for _, p := range all {
		if len(p.Default) > csv1.MaxParameterText || len(p.Description) > csv1.MaxParameterText {
			t.Fatalf("%d, %d", len(p.Default), len(p.Description))
		}
	}
}
