{{- /* Templates never change once clusters use them, so each release has its own. */ -}}
{{- define "class" -}}
{{ .Release.Name }}-{{ .Chart.Version }}
{{- end -}}
