{{/*
vllm-common.preStopSeconds: the wait before the stop signal. Where the engine cannot drain after the signal, the
drain time is spent before it.
Parameters: the role context.
*/}}
{{- define "vllm-common.preStopSeconds" -}}
{{- if include "vllm-common.has" (dict "root" .root "feature" "shutdownTimeout") -}}
{{- int64 .role.drain.preStopSeconds -}}
{{- else -}}
{{- add .role.drain.preStopSeconds .role.drain.timeoutSeconds -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.gracePeriodSeconds: the one sum: wait, drain, and 15 seconds for the processes to end.
Parameters: the role context.
*/}}
{{- define "vllm-common.gracePeriodSeconds" -}}
{{- add .role.drain.preStopSeconds .role.drain.timeoutSeconds 15 -}}
{{- end }}

{{/*
vllm-common.lifecycle: the container's preStop hook. The engine images carry `sleep`; the API's own sleep action
needs Kubernetes 1.30.
Parameters: the role context.
*/}}
{{- define "vllm-common.lifecycle" -}}
{{- $seconds := include "vllm-common.preStopSeconds" . -}}
{{- if ne $seconds "0" -}}
lifecycle:
  preStop:
    exec:
      command: [sleep, {{ $seconds | quote }}]
{{- end }}
{{- end }}
