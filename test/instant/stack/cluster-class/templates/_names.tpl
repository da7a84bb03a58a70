{{- define "class" -}}
{{ .Release.Name }}-{{ .Chart.Version }}
{{- end -}}
