{{/*
vllm-common.probes: startup, liveness and readiness, all on /health: it answers 200 only once the engine serves, and
where a pod has several servers, once all of them do.
The startup probe's failures are computed from the budget, rounded up.
Parameters: the role context.
*/}}
{{- define "vllm-common.probes" -}}
{{- $startup := dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" (div (add .role.startup.budgetSeconds 9) 10) -}}
{{- $port := ternary "health" "http" (gt (include "vllm-common.servers" . | int64) 1) -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .root.Values.global.vllm.tls.secretName "") -}}
{{- range $kind, $probe := dict "startup" $startup "liveness" .role.probes.liveness "readiness" .role.probes.readiness }}
{{ $kind }}Probe:
  httpGet:
    path: /health
    port: {{ $port }}
    scheme: {{ $scheme }}
  {{- range $field, $number := $probe }}
  {{ $field }}: {{ int64 $number }}
  {{- end }}
{{- end }}
{{- end }}
