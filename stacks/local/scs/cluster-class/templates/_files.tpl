{{- /* Files of every control plane machine, as a list. They are part of the machine and of the patch that adds mirrors. */ -}}
{{- define "control-plane-files" -}}
- path: /etc/kubernetes/admission/admission.yaml
  owner: root:root
  permissions: "0600"
  content: |
    apiVersion: apiserver.config.k8s.io/v1
    kind: AdmissionConfiguration
    plugins:
      - name: EventRateLimit
        path: events.yaml
      - name: PodSecurity
        path: pods.yaml
- path: /etc/kubernetes/admission/events.yaml
  owner: root:root
  permissions: "0600"
  content: |
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
      - {type: Server, qps: 5000, burst: 20000}
      - {type: Namespace, qps: 50, burst: 500, cacheSize: 2000}
- path: /etc/kubernetes/audit/policy.yaml
  owner: root:root
  permissions: "0600"
  content: |
    apiVersion: audit.k8s.io/v1
    kind: Policy
    omitStages: [RequestReceived]
    rules:
      - level: None
        nonResourceURLs: [/healthz*, /livez*, /readyz*, /version]
      - level: None
        verbs: [get, list, watch]
        users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
      - level: None
        resources: [{group: coordination.k8s.io, resources: [leases]}, {group: "", resources: [events]}]
      - level: Metadata
{{- end -}}
