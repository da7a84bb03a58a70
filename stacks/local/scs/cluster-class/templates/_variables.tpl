{{- define "variables" -}}
- name: flavor
  required: false
  schema:
    openAPIV3Schema:
      type: string
      description: The size of machines, as SCS names it (SCS-2V-4 is 2 virtual CPUs and 4 GiB of memory). Give control plane and workers different ones by variables.overrides.
      maxLength: 64
      pattern: ^SCS-[0-9]+[A-Z]*-[0-9]+(-[A-Za-z0-9_-]*)?$
      default: {{ .Values.variables.flavor }}
      example: SCS-4V-8
- name: certSANs
  required: false
  schema:
    openAPIV3Schema:
      type: array
      description: Further names and addresses in the API server's certificate.
      maxItems: 100
      items:
        type: string
        minLength: 1
        maxLength: 253
        pattern: "^[A-Za-z0-9.:*-]+$"
        x-kubernetes-validations:
          - rule: "isIP(self) || self.matches('^([*][.])?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$')"
            message: write the name of a host, such as api.example.org or *.example.org, or an IP address
      default: {{ toJson .Values.variables.certSANs }}
- name: podSecurityStandard
  required: false
  schema:
    openAPIV3Schema:
      type: string
      description: The Pod Security Standard that namespaces have unless they choose another by label. kube-system has none.
      enum: [privileged, baseline, restricted]
      default: {{ .Values.variables.podSecurityStandard }}
- name: oidcConfig
  required: false
  schema:
    openAPIV3Schema:
      type: object
      description: Users of an OpenID Connect issuer may log in, if clientID and issuerURL are set.
      properties:
        clientID: {type: string, maxLength: 256, description: "The client that tokens must be for."}
        issuerURL: {type: string, maxLength: 2048, description: "The issuer", pattern: "^https://[^[:space:][:cntrl:]]+$"}
        usernameClaim: {type: string, maxLength: 256, description: "The claim that is the user's name.", default: preferred_username}
        groupsClaim: {type: string, maxLength: 256, description: "The claim that has the user's groups.", default: groups}
        usernamePrefix: {type: string, maxLength: 256, description: "What names of users begin with", default: "oidc:"}
        groupsPrefix: {type: string, maxLength: 256, description: "What names of groups begin with", default: "oidc:"}
- name: registryMirrors
  required: false
  schema:
    openAPIV3Schema:
      type: array
      description: Mirrors from which nodes pull images.
      default: {{ toJson .Values.variables.registryMirrors }}
      maxItems: 100
      items:
        type: object
        required: [hostnameUpstream, urlUpstream, urlMirror]
        properties:
          hostnameUpstream: {type: string, maxLength: 253, pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$", description: "The host in names of images.", example: docker.io}
          urlUpstream: {type: string, maxLength: 2048, pattern: "^https?://[^[:space:][:cntrl:]]+$", description: "Where the host itself is.", example: "https://registry-1.docker.io"}
          urlMirror: {type: string, maxLength: 2048, pattern: "^https?://[^[:space:][:cntrl:]]+$", description: "Where the mirror is.", example: "https://mirror.example.org/v2/docker.io"}
          certMirror: {type: string, maxLength: 65536, pattern: '^[A-Za-z0-9+/=\n -]*$', description: "The mirror's certificate authority as PEM, if it is none that nodes know.", default: ""}
{{- end -}}
