{{- define "control-plane-selector" -}}
selector:
  apiVersion: controlplane.cluster.x-k8s.io/v1beta2
  kind: KubeadmControlPlaneTemplate
  matchResources: {controlPlane: true}
{{- end -}}

{{- /* containerd reads one file for each host that has a mirror. */ -}}
{{- define "mirror-files" -}}
{{ `{{- range .registryMirrors }}` }}
- path: {{ `{{ printf "/etc/containerd/certs.d/%s/hosts.toml" .hostnameUpstream | quote }}` }}
  owner: root:root
  permissions: "0644"
  content: |
    server = {{ `{{ .urlUpstream | quote }}` }}
    [host.{{ `{{ .urlMirror | quote }}` }}]
      capabilities = ["pull", "resolve"]
      override_path = true
      {{ `{{- if .certMirror }}` }}
      ca = {{ `{{ printf "/etc/containerd/certs.d/%s/ca.crt" .hostnameUpstream | quote }}` }}
      {{ `{{- end }}` }}
{{ `{{- if .certMirror }}` }}
- path: {{ `{{ printf "/etc/containerd/certs.d/%s/ca.crt" .hostnameUpstream | quote }}` }}
  owner: root:root
  permissions: "0644"
  content: {{ `{{ .certMirror | quote }}` }}
{{ `{{- end }}` }}
{{ `{{- end }}` }}
{{- end -}}

{{- define "patches" -}}
- name: flavor
  description: The size of machines.
  definitions:
    - selector:
        apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
        kind: LocalMachineTemplate
        matchResources:
          controlPlane: true
          machineDeploymentClass: {names: [default-worker]}
      jsonPatches:
        - op: add
          path: /spec/template/spec/capacity
          valueFrom:
            template: |
              cpu: {{ `{{ regexReplaceAll "^SCS-([0-9]+).*" .flavor "${1}" | quote }}` }}
              memory: {{ `{{ regexReplaceAll "^SCS-[0-9]+[A-Z]*-([0-9]+).*" .flavor "${1}Gi" | quote }}` }}
- name: certSANs
  description: Further names in the API server's certificate.
  enabledIf: {{ `"{{ if .certSANs }}true{{ end }}"` }}
  definitions:
    - {{- include "control-plane-selector" . | nindent 6 }}
      jsonPatches:
        - op: add
          path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs
          valueFrom: {variable: certSANs}
- name: registryMirrors
  description: Mirrors of registries, for control plane and workers. It writes the list of files anew, so it comes before those that add to it.
  enabledIf: {{ `"{{ if .registryMirrors }}true{{ end }}"` }}
  definitions:
    - {{- include "control-plane-selector" . | nindent 6 }}
      jsonPatches:
        - op: add
          path: /spec/template/spec/kubeadmConfigSpec/files
          valueFrom:
            template: |
              {{- include "control-plane-files" . | nindent 14 }}
              {{- include "mirror-files" . | nindent 14 }}
    - selector:
        apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
        kind: KubeadmConfigTemplate
        matchResources:
          machineDeploymentClass: {names: [default-worker]}
      jsonPatches:
        - op: add
          path: /spec/template/spec/files
          valueFrom:
            template: |
              {{- include "mirror-files" . | nindent 14 }}
- name: podSecurityStandard
  description: The standard of namespaces that choose none.
  definitions:
    - {{- include "control-plane-selector" . | nindent 6 }}
      jsonPatches:
        - op: add
          path: /spec/template/spec/kubeadmConfigSpec/files/-
          valueFrom:
            template: |
              path: /etc/kubernetes/admission/pods.yaml
              owner: root:root
              permissions: "0600"
              content: |
                apiVersion: pod-security.admission.config.k8s.io/v1
                kind: PodSecurityConfiguration
                defaults:
                  enforce: {{ `{{ .podSecurityStandard | quote }}` }}
                  enforce-version: latest
                  audit: restricted
                  audit-version: latest
                  warn: restricted
                  warn-version: latest
                exemptions:
                  namespaces: [kube-system]
- name: authentication
  description: Who may come in. Without a name, only health and what a joining node must know.
  definitions:
    - {{- include "control-plane-selector" . | nindent 6 }}
      jsonPatches:
        - op: add
          path: /spec/template/spec/kubeadmConfigSpec/files/-
          valueFrom:
            template: |
              path: /etc/kubernetes/authentication/authentication.yaml
              owner: root:root
              permissions: "0600"
              content: |
                apiVersion: apiserver.config.k8s.io/v1
                kind: AuthenticationConfiguration
                anonymous:
                  enabled: true
                  conditions:
                    - path: /livez
                    - path: /readyz
                    - path: /healthz
                    - path: /version
                    - path: /api/v1/namespaces/kube-public/configmaps/cluster-info
                {{ `{{- if and .oidcConfig .oidcConfig.clientID .oidcConfig.issuerURL }}` }}
                jwt:
                  - issuer:
                      url: {{ `{{ .oidcConfig.issuerURL | quote }}` }}
                      audiences: [{{ `{{ .oidcConfig.clientID | quote }}` }}]
                    claimMappings:
                      username:
                        claim: {{ `{{ .oidcConfig.usernameClaim | quote }}` }}
                        prefix: {{ `{{ .oidcConfig.usernamePrefix | quote }}` }}
                      groups:
                        claim: {{ `{{ .oidcConfig.groupsClaim | quote }}` }}
                        prefix: {{ `{{ .oidcConfig.groupsPrefix | quote }}` }}
                {{ `{{- end }}` }}
{{- end -}}
