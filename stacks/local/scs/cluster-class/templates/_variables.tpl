{{- define "variables" -}}
- name: flavor
  required: false
  schema:
    openAPIV3Schema:
      type: string
      description: The size of machines, as SCS names it (SCS-2V-4 is 2 virtual CPUs and 4 GiB of memory). Give control plane and workers different ones by variables.overrides.
      pattern: ^SCS-[0-9]+[A-Z]*-[0-9]+(-.*)?$
      default: {{ .Values.variables.flavor }}
      example: SCS-4V-8
- name: certSANs
  required: false
  schema:
    openAPIV3Schema:
      type: array
      description: Further names and addresses in the API server's certificate.
      items: {type: string, minLength: 1}
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
        clientID: {type: string, description: "The client that tokens must be for."}
        issuerURL: {type: string, description: "The issuer", pattern: ^https://.+$}
        usernameClaim: {type: string, description: "The claim that is the user's name.", default: preferred_username}
        groupsClaim: {type: string, description: "The claim that has the user's groups.", default: groups}
        usernamePrefix: {type: string, description: "What names of users begin with", default: "oidc:"}
        groupsPrefix: {type: string, description: "What names of groups begin with", default: "oidc:"}
- name: registryMirrors
  required: false
  schema:
    openAPIV3Schema:
      type: array
      description: Mirrors from which nodes pull images.
      default: {{ toJson .Values.variables.registryMirrors }}
      items:
        type: object
        required: [hostnameUpstream, urlUpstream, urlMirror]
        properties:
          hostnameUpstream: {type: string, description: "The host in names of images.", example: docker.io}
          urlUpstream: {type: string, description: "Where the host itself is.", example: "https://registry-1.docker.io"}
          urlMirror: {type: string, description: "Where the mirror is.", example: "https://mirror.example.org/v2/docker.io"}
          certMirror: {type: string, description: "The mirror's certificate authority as PEM, if it is none that nodes know.", default: ""}
{{- end -}}
