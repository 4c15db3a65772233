{{/*
vllm-llmd.prefill, vllm-llmd.decode: render one define of vllm-common for a role.
Parameters: root; `object`, the define's name; optional `with`, further keys for it.
*/}}
{{- define "vllm-llmd.prefill" -}}
{{- $role := dict "root" .root "name" "vllm-llmd" "component" "llmd-prefill" "role" .root.Values.prefill "kv" "producer" -}}
{{- $own := dict "at" (print (include "vllm-common.valuesPath" .) "prefill.") "own" (include "vllm-llmd.poolLabels" (dict "root" .root "role" "prefill") | fromYaml) -}}
{{- include .object (merge (.with | default dict) $role $own (include "vllm-llmd.engine" . | fromJson)) -}}
{{- end }}

{{- define "vllm-llmd.decode" -}}
{{- $role := dict "root" .root "name" "vllm-llmd" "component" "llmd-decode" "role" .root.Values.decode "kv" "consumer" -}}
{{- $own := dict "at" (print (include "vllm-common.valuesPath" .) "decode.") "own" (include "vllm-llmd.poolLabels" (dict "root" .root "role" "decode") | fromYaml) -}}
{{- $sidecar := dict "sidecars" (list (include "vllm-llmd.sidecar" . | fromYaml)) "token" (toString .root.Values.routingSidecar.ssrfProtection) -}}
{{- include .object (merge (.with | default dict) $role $own $sidecar (include "vllm-llmd.engine" . | fromJson)) -}}
{{- end }}

{{/*
vllm-llmd.poolLabels: labels by which the picker finds an engine and knows its role.
Parameters: root; role, prefill or decode.
*/}}
{{- define "vllm-llmd.poolLabels" -}}
{{ include "vllm-llmd.poolSelector" . }}
llm-d.ai/role: {{ .role }}
{{- end }}

{{/*
vllm-llmd.poolSelector: labels of every engine of this release's pool, and of no other pod.
Parameters: root.
*/}}
{{- define "vllm-llmd.poolSelector" -}}
llm-d.ai/inference-serving: "true"
vllm-phases.dev/pool: {{ include "vllm-llmd.poolName" . }}
{{- end }}

{{/*
vllm-llmd.poolName: name of the pool of engines, which is that of the InferencePool where there is one.
Parameters: root.
*/}}
{{- define "vllm-llmd.poolName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "pool") -}}
{{- end }}

{{/*
vllm-llmd.poolReference: how objects name the InferencePool.
Parameters: root.
*/}}
{{- define "vllm-llmd.poolReference" -}}
group: inference.networking.k8s.io
kind: InferencePool
name: {{ include "vllm-llmd.poolName" . }}
{{- end }}

{{/*
vllm-llmd.engine: what this layer adds to the engines of both roles, as JSON: keys of the role context. The sidecar
keeps idle connections for 90 seconds; an engine that closes them earlier resets requests.
Parameters: root.
*/}}
{{- define "vllm-llmd.engine" -}}
{{- $owner := print (include "vllm-common.valuesPath" .) "endpointPicker.prefixCache.type" -}}
{{- dict
  "env" (dict "VLLM_HTTP_TIMEOUT_KEEP_ALIVE" 120)
  "flags" (include "vllm-llmd.engineFlags" . | fromJson)
  "owners" (ternary (dict "kv-events-config" $owner) dict (ne (include "vllm-llmd.precise" .) ""))
  "ports" (include "vllm-llmd.enginePorts" . | fromJson)
  "queries" (include "vllm-llmd.scalingQueries" . | fromJson)
  | toJson -}}
{{- end }}

{{/*
vllm-llmd.scalingQueries: queries of the picker's metrics by the metric's name in the values, as JSON. Not every one of
them has a label for the pool, so they are told apart by the picker's pods.
Parameters: root.
*/}}
{{- define "vllm-llmd.scalingQueries" -}}
{{- $queries := dict -}}
{{- range $metric, $fact := (include "vllm-llmd.facts" . | fromJson).metrics -}}
{{- range $fact.names -}}
{{- if include "vllm-llmd.within" (dict "root" $.root "window" .) }}{{ $_ := set $queries $metric (include "vllm-common.podSum" (dict "root" $.root "metric" .name "deployment" (include "vllm-llmd.pickerName" $))) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $queries -}}
{{- end }}

{{/*
vllm-llmd.peers: pods of this release's components, as peers of a NetworkPolicy.
Parameters: root; components, a list. `test` is the pod of `helm test`, whichever chart owns it.
*/}}
{{- define "vllm-llmd.peers" -}}
{{- range $component := .components }}
- podSelector:
    matchLabels:
      {{- $labels := include "vllm-common.selectorLabels" (dict "root" $.root "name" "vllm-llmd" "component" $component) | fromYaml }}
      {{- if eq $component "test" }}{{ $labels = omit $labels "app.kubernetes.io/name" }}{{ end }}
      {{- toYaml $labels | nindent 6 }}
{{- end }}
{{- end }}

{{/*
vllm-llmd.engines: prefill and decode, which may reach each other on every port: UCX and Mooncake choose theirs freely.
Parameters: root.
*/}}
{{- define "vllm-llmd.engines" -}}
{{- include "vllm-llmd.peers" (dict "root" .root "components" (list "llmd-prefill" "llmd-decode")) -}}
{{- end }}

{{/*
vllm-llmd.testRoles: where the test of the release finds the engines, as a JSON map.
Parameters: root; `values`, the values of this chart.
*/}}
{{- define "vllm-llmd.testRoles" -}}
{{- $roles := dict -}}
{{- range $component := list "prefill" "decode" -}}
{{- $_ := set $roles $component (printf "%s:%d" (include "vllm-common.fullname" (dict "root" $.root "component" (printf "llmd-%s" $component))) (int64 (index $.values $component).port)) -}}
{{- end -}}
{{- toJson $roles -}}
{{- end }}

{{/*
vllm-llmd.prefillMayGo: "true" when an autoscaler may take the last prefill engine away, else nothing.
Parameters: root.
*/}}
{{- define "vllm-llmd.prefillMayGo" -}}
{{- $scaling := .root.Values.prefill.autoscaling -}}
{{- if and (eq $scaling.type "keda") (eq (int64 $scaling.minReplicas) 0) }}true{{ end -}}
{{- end }}
