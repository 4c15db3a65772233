{{/*
vllm-common.routerName: name of the Service of vllm-router.
Parameters: root.
*/}}
{{- define "vllm-common.routerName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "router") -}}
{{- end }}

{{/*
vllm-common.routedLabels: label by which vllm-router finds decode engines of more than one chart.
Parameters: root.
*/}}
{{- define "vllm-common.routedLabels" -}}
vllm-phases.dev/decode: {{ include "vllm-common.routerName" . }}
{{- end }}
