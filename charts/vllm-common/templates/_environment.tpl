{{/*
vllm-common.cacheEnvironment: every cache of the engine and of the libraries under it, below one path, as JSON.
Parameters: the role context.
*/}}
{{- define "vllm-common.cacheEnvironment" -}}
{{- $path := .role.cache.mountPath | trimSuffix "/" -}}
{{- dict
  "HF_HOME" (printf "%s/huggingface" $path)
  "VLLM_CACHE_ROOT" (printf "%s/vllm" $path)
  "XDG_CACHE_HOME" (printf "%s/xdg" $path)
  "TRITON_CACHE_DIR" (printf "%s/triton" $path)
  "TORCHINDUCTOR_CACHE_DIR" (printf "%s/torchinductor" $path)
  "FLASHINFER_WORKSPACE_BASE" (printf "%s/flashinfer" $path)
  "DG_JIT_CACHE_DIR" (printf "%s/deep_gemm" $path)
  "OUTLINES_CACHE_DIR" (printf "%s/outlines" $path)
  "CUDA_CACHE_PATH" (printf "%s/cuda" $path)
  | toJson -}}
{{- end }}

{{/*
vllm-common.typedEnvironment: the variables of typed values, as a JSON map of name to value or {valueFrom}.
USER and HOME are set because torch looks the user up at import, and a platform's UID has no passwd entry.
Parameters: the role context.
*/}}
{{- define "vllm-common.typedEnvironment" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $env := include "vllm-common.cacheEnvironment" . | fromJson -}}
{{- $_ := set $env "HOME" "/home/vllm" -}}
{{- $_ := set $env "USER" "vllm" -}}
{{- if include "vllm-common.has" (dict "root" .root "feature" "engineReadyTimeout") -}}
{{- $_ := set $env "VLLM_ENGINE_READY_TIMEOUT_S" .role.startup.budgetSeconds -}}
{{- end -}}
{{- if gt (int64 .role.parallelism.nodes) 1 }}{{ $_ := set $env "VLLM_HOST_IP" (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "status.podIP"))) }}{{ end -}}
{{- with $vllm.huggingface.endpoint }}{{ $_ := set $env "HF_ENDPOINT" . }}{{ end -}}
{{- if $vllm.huggingface.offline }}{{ $_ := set $env "HF_HUB_OFFLINE" "1" }}{{ end -}}
{{- range $name, $secret := dict "HF_TOKEN" $vllm.huggingface.tokenSecret "VLLM_API_KEY" $vllm.auth.apiKeySecret -}}
{{- if $secret.name -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $secret.name "key" $secret.key))) -}}
{{- end -}}
{{- end -}}
{{- merge $env (.env | default dict) (include "vllm-common.kvEnvironment" . | fromJson) | toJson -}}
{{- end }}

{{/*
vllm-common.environment: the container's env. The pod's own address comes first, so that any variable below may
use it as $(POD_IP); the rest is in order of name. Role wins over global, and both over the typed values.
Parameters: the role context.
*/}}
{{- define "vllm-common.environment" -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- $typed := ternary "vllm-common.simulatorEnvironment" "vllm-common.typedEnvironment" (ne (include "vllm-common.simulated" .) "") }}
{{- $env := mergeOverwrite (include $typed . | fromJson) (deepCopy .root.Values.global.vllm.env) (deepCopy .role.env) }}
{{ include "vllm-common.env" (omit $env "POD_IP") }}
{{- end }}

{{/*
vllm-common.env: a map of variables as a container's env, in order of name.
Parameters: the map, name to value or {valueFrom}.
*/}}
{{- define "vllm-common.env" -}}
{{- $items := list -}}
{{- range $name, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $items = append $items (dict "name" $name "valueFrom" $value.valueFrom) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $items = append $items (dict "name" $name "value" (include "vllm-common.scalar" $value)) -}}
{{- end -}}
{{- end -}}
{{- if $items }}{{ toYaml $items }}{{ end -}}
{{- end }}
