{{/*
vllm-common.monitorEndpoint: one scrape of a role's metrics.
Parameters: root; port, by name.
*/}}
{{- define "vllm-common.monitorEndpoint" -}}
- port: {{ .port }}
  path: /metrics
  interval: {{ .root.Values.global.vllm.monitoring.interval }}
  {{- if .root.Values.global.vllm.tls.secretName }}
  scheme: https
  tlsConfig:
    insecureSkipVerify: true
  {{- end }}
{{- end }}

{{/*
vllm-common.monitor: PodMonitor or ServiceMonitor of a role, whichever is asked for.
Parameters: the role context; `kind`, podMonitor or serviceMonitor.
*/}}
{{- define "vllm-common.monitor" -}}
{{- if eq .root.Values.global.vllm.monitoring.kind .kind -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ ternary "PodMonitor" "ServiceMonitor" (eq .kind "podMonitor") }}
metadata:
  {{- include "vllm-common.metadata" (merge (dict "extra" .root.Values.global.vllm.monitoring.labels) .) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "vllm-common.selectorLabels" . | nindent 6 }}
  {{ ternary "podMetricsEndpoints" "endpoints" (eq .kind "podMonitor") }}:
    {{- range include "vllm-common.httpPorts" . | fromJsonArray }}
    {{- include "vllm-common.monitorEndpoint" (dict "root" $.root "port" .name) | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
