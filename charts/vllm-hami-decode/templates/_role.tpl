{{/*
vllm-hami-decode.role: renders one define of vllm-common for the role.
Parameters: root; `object`, the define's name; optional `with`, further keys for it.
*/}}
{{- define "vllm-hami-decode.role" -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $role := dict "root" .root "name" "vllm-hami-decode" "component" "hami-decode" "role" .root.Values "kv" "consumer" "at" $at -}}
{{- include .object (merge (.with | default dict) (include (printf "vllm-hami-decode.%s" .root.Values.pool) . | fromJson) $role) -}}
{{- end }}

{{/*
vllm-hami-decode.llmd, vllm-hami-decode.pdNccl: what each pool adds to the role context, as JSON: how its pods are found,
and what stands between the pool and the engine. In a pool whose pods have several ports, these pods have the first.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.llmd" -}}
{{- $sidecar := include "vllm-common.sidecar" (include "vllm-hami-decode.sidecarSettings" . | fromJson | merge (dict "root" .root)) | fromYaml -}}
{{- dict
  "own" (include "vllm-common.poolLabels" (dict "root" .root "role" "decode") | fromYaml)
  "env" (dict "VLLM_HTTP_TIMEOUT_KEEP_ALIVE" 120)
  "sidecars" (list $sidecar)
  "token" (toString .root.Values.routingSidecar.ssrfProtection)
  | toJson -}}
{{- end }}

{{- define "vllm-hami-decode.pdNccl" -}}
{{- dict
  "own" (include "vllm-common.routedLabels" . | fromYaml)
  "role" (dict "port" .root.Values.poolPort)
  "router" (include "vllm-common.routerName" .)
  | toJson -}}
{{- end }}

{{/*
vllm-hami-decode.sidecarSettings: what decides the routing sidecar, as JSON: role, poolPort and settings of
vllm-common.sidecar.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.sidecarSettings" -}}
{{- $values := .root.Values -}}
{{- dict "role" (pick $values "port" "parallelism") "poolPort" $values.poolPort "settings" $values.routingSidecar | toJson -}}
{{- end }}

{{/*
vllm-hami-decode.protected: "true" where the sidecar reads which pods belong to the pool, else nothing.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.protected" -}}
{{- if and (eq .root.Values.pool "llmd") .root.Values.routingSidecar.ssrfProtection }}true{{ end -}}
{{- end }}

{{/*
vllm-hami-decode.components: components of the pool's layer by what they do, as JSON: chart; prefill, with the pods of a
replica that take no requests; callers, which send requests.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.components" -}}
{{- index (dict
  "llmd" (dict "chart" "vllm-llmd" "prefill" (list "llmd-prefill" "llmd-prefill-worker") "callers" (list "proxy" "picker"))
  "pdNccl" (dict "chart" "vllm-pd-nccl" "prefill" (list "prefill" "prefill-worker") "callers" (list "router"))
  ) .root.Values.pool | toJson -}}
{{- end }}

{{/*
vllm-hami-decode.selector: selects pods of some components of the pool's layer.
Parameters: root; of, a key of vllm-hami-decode.components.
*/}}
{{- define "vllm-hami-decode.selector" -}}
{{- $components := include "vllm-hami-decode.components" . | fromJson -}}
matchLabels:
  app.kubernetes.io/name: {{ $components.chart }}
  app.kubernetes.io/instance: {{ .root.Release.Name }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: {{ index $components .of | toJson }}
{{- end }}

{{/*
vllm-hami-decode.engines: prefill of the pool and this role, which may reach each other on every port: KV transfer
chooses its own.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.engines" -}}
- podSelector:
    {{- include "vllm-hami-decode.selector" (dict "root" .root "of" "prefill") | nindent 4 }}
- podSelector:
    {{- include "vllm-hami-decode.role" (dict "root" .root "object" "vllm-common.memberSelector") | nindent 4 }}
{{- end }}

{{/*
vllm-hami-decode.validate: what only this chart knows of its values. The role's own mistakes are told by
vllm-common.validate, those of both layers together by vllm-stack.
Parameters: root.
*/}}
{{- define "vllm-hami-decode.validate" -}}
{{- $values := .root.Values -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $kv := $values.global.vllm.kvTransfer -}}
{{- $messages := list (include "vllm-hami-decode.role" (dict "root" .root "object" "vllm-common.findings")) -}}
{{- if eq $values.pool "llmd" -}}
{{- if eq (int64 $values.port) (int64 $values.poolPort) -}}
{{- $messages = append $messages (printf "%sport: %d is the routing sidecar's, which listens on %spoolPort; set another, such as 8200" $at (int64 $values.port) $at) -}}
{{- end -}}
{{- if and (eq $kv.connector "nixl") (eq (int64 $kv.nixl.sideChannelPort) (int64 $values.poolPort)) -}}
{{- $messages = append $messages (printf "global.vllm.kvTransfer.nixl.sideChannelPort: %d is %spoolPort; choose another" (int64 $values.poolPort) $at) -}}
{{- end -}}
{{- if and (ne $kv.connector "p2pNccl") (not (include "vllm-common.sidecarConnector" .)) -}}
{{- $messages = append $messages (printf "global.vllm.kvTransfer.connector: llm-d's sidecar %s has no protocol for %s; set the connector nixl in mode pull, or a newer global.vllm.llmd.version" (include "vllm-common.llmdVersion" .) (include "vllm-common.connectorClass" .)) -}}
{{- end -}}
{{- end -}}
{{- include "vllm-common.fail" (join "\n" $messages) -}}
{{- end }}
