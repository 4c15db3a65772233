{{/*
vllm-common.leaseSeconds: how long a stopping prefill engine must still hold blocks for decode; 0 for other roles and
for the simulator, which holds none.
The engine's own drain does not wait for decode to fetch them.
Parameters: the role context.
*/}}
{{- define "vllm-common.leaseSeconds" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- ternary (int64 $kv.nixl.leaseSeconds) 0 (and (not (include "vllm-common.simulated" .)) (eq (.kv | default "") "producer") (has $kv.connector (list "nixl" "mooncake"))) -}}
{{- end }}

{{/*
vllm-common.waitSeconds: the wait before the stop signal: until Services forget the pod, and until decode has fetched.
Parameters: the role context.
*/}}
{{- define "vllm-common.waitSeconds" -}}
{{- max (int64 .role.drain.preStopSeconds) (include "vllm-common.leaseSeconds" . | int64) -}}
{{- end }}

{{/*
vllm-common.preStopSeconds: what the preStop hook sleeps. Where the engine cannot drain after the signal, the drain
time is spent before it; so it is in a pod without API server, which must last until the replica's requests have ended.
The simulator drains.
Parameters: the role context.
*/}}
{{- define "vllm-common.preStopSeconds" -}}
{{- $drains := or (include "vllm-common.simulated" .) (include "vllm-common.has" (dict "root" .root "feature" "shutdownTimeout")) -}}
{{- if .member }}{{ $drains = "" }}{{ end -}}
{{- add (include "vllm-common.waitSeconds" .) (ternary 0 .role.drain.timeoutSeconds (ne $drains "")) -}}
{{- end }}

{{/*
vllm-common.gracePeriodSeconds: the one sum: wait, drain, and 15 seconds for the processes to end.
Parameters: the role context.
*/}}
{{- define "vllm-common.gracePeriodSeconds" -}}
{{- add (include "vllm-common.waitSeconds" .) .role.drain.timeoutSeconds 15 -}}
{{- end }}

{{/*
vllm-common.lifecycle: the container's preStop hook. The engine images carry `sleep`; the simulator's does not, and the
API's own sleep action needs Kubernetes 1.30.
Parameters: the role context.
*/}}
{{- define "vllm-common.lifecycle" -}}
{{- $seconds := include "vllm-common.preStopSeconds" . -}}
{{- $simulated := include "vllm-common.simulated" . -}}
{{- if eq $seconds "0" -}}
{{- else if not $simulated -}}
lifecycle:
  preStop:
    exec:
      command: [sleep, {{ $seconds | quote }}]
{{- else if semverCompare ">=1.30.0-0" .root.Capabilities.KubeVersion.Version -}}
lifecycle:
  preStop:
    sleep:
      seconds: {{ $seconds }}
{{- end }}
{{- end }}
