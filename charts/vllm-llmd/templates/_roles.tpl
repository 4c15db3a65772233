{{/*
vllm-llmd.prefill, vllm-llmd.decode: render one define of vllm-common for a role.
Parameters: root; `object`, the define's name; optional `with`, further keys for it.
*/}}
{{- define "vllm-llmd.prefill" -}}
{{- $role := dict "root" .root "name" "vllm-llmd" "component" "llmd-prefill" "role" .root.Values.prefill "kv" "producer" -}}
{{- include .object (merge (.with | default dict) $role (include "vllm-llmd.own" (dict "root" .root "role" "prefill") | fromYaml) (include "vllm-llmd.engine" . | fromJson)) -}}
{{- end }}

{{- define "vllm-llmd.decode" -}}
{{- $role := dict "root" .root "name" "vllm-llmd" "component" "llmd-decode" "role" .root.Values.decode "kv" "consumer" -}}
{{- $sidecar := dict "sidecars" (list (include "vllm-llmd.sidecar" . | fromYaml)) "token" (toString .root.Values.routingSidecar.ssrfProtection) -}}
{{- include .object (merge (.with | default dict) $role $sidecar (include "vllm-llmd.own" (dict "root" .root "role" "decode") | fromYaml) (include "vllm-llmd.engine" . | fromJson)) -}}
{{- end }}

{{/*
vllm-llmd.own: what this layer adds to a role context of vllm-common.
Parameters: root; role, prefill or decode.
*/}}
{{- define "vllm-llmd.own" -}}
at: {{ include "vllm-common.valuesPath" . }}{{ .role }}.
own:
  {{- include "vllm-llmd.poolLabels" . | nindent 2 }}
ownAnnotations: {{ include "vllm-llmd.activePorts" . }}
serverPorts: {{ (include "vllm-llmd.facts" . | fromJson).pool_ports }}
{{- end }}

{{/*
vllm-llmd.targetPorts: ports of the pool, as a JSON list: one for each server of the role that has the most in a pod.
Parameters: root.
*/}}
{{- define "vllm-llmd.targetPorts" -}}
{{- $most := 1 -}}
{{- range $role := list "prefill" "decode" }}{{ $most = max $most (include "vllm-common.servers" (dict "role" (index $.root.Values $role)) | int64) }}{{ end -}}
{{- $ports := list -}}
{{- range include "vllm-common.portRange" (dict "name" "port" "first" .root.Values.prefill.port "count" $most) | fromJsonArray }}{{ $ports = append $ports (int64 .number) }}{{ end -}}
{{- toJson $ports -}}
{{- end }}

{{/*
vllm-llmd.activePorts: the annotation by which a pod tells the picker on which of the pool's ports it listens, as JSON;
an empty map where it listens on all.
Parameters: root; role, prefill or decode.
*/}}
{{- define "vllm-llmd.activePorts" -}}
{{- $all := include "vllm-llmd.targetPorts" . | fromJsonArray -}}
{{- $count := include "vllm-common.servers" (dict "role" (index .root.Values .role)) | int -}}
{{- $active := list -}}
{{- range $index, $port := $all }}{{ if lt $index $count }}{{ $active = append $active (int64 $port) }}{{ end }}{{ end -}}
{{- $annotations := dict -}}
{{- if lt $count (len $all) -}}
{{- range $name, $window := (include "vllm-llmd.facts" . | fromJson).pool_annotations -}}
{{- if include "vllm-llmd.within" (dict "root" $.root "window" $window) }}{{ $_ := set $annotations $name (join "," $active) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $annotations -}}
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
{{- if include "vllm-llmd.within" (dict "root" $.root "window" .) }}{{ $_ := set $queries $metric (include "vllm-common.podSum" (dict "root" $.root "metric" .name "kind" "Deployment" "name" (include "vllm-llmd.pickerName" $))) }}{{ end -}}
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
{{- range $role := list "prefill" "decode" }}
- podSelector:
    {{- include (printf "vllm-llmd.%s" $role) (dict "root" $.root "object" "vllm-common.memberSelector") | nindent 4 }}
{{- end }}
{{- end }}

{{/*
vllm-llmd.testRoles: where the test of the release finds the engines, as a JSON map.
Parameters: root; `values`, the values of this chart.
*/}}
{{- define "vllm-llmd.testRoles" -}}
{{- $roles := dict -}}
{{- range $component := list "prefill" "decode" -}}
{{- $role := index $.values $component -}}
{{- $host := include "vllm-common.fullname" (dict "root" $.root "component" (printf "llmd-%s" $component)) -}}
{{- $servers := list -}}
{{- range include "vllm-common.httpPorts" (dict "role" $role) | fromJsonArray }}{{ $servers = append $servers (printf "%s:%d" $host (int64 .number)) }}{{ end -}}
{{- $_ := set $roles $component (join " " $servers) -}}
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
