{{/*
vllm-pd-nccl.prefill, vllm-pd-nccl.decode: render one define of vllm-common for a role.
Parameters: root; `object`, the define's name; optional `with`, further keys for it.
*/}}
{{- define "vllm-pd-nccl.prefill" -}}
{{- $role := dict "root" .root "name" "vllm-pd-nccl" "component" "prefill" "role" .root.Values.prefill "kv" "producer" "at" (print (include "vllm-common.valuesPath" .) "prefill.") -}}
{{- include .object (merge (.with | default dict) $role (dict "router" (include "vllm-pd-nccl.routerName" .))) -}}
{{- end }}

{{- define "vllm-pd-nccl.decode" -}}
{{- $role := dict "root" .root "name" "vllm-pd-nccl" "component" "decode" "role" .root.Values.decode "kv" "consumer" "at" (print (include "vllm-common.valuesPath" .) "decode.") -}}
{{- include .object (merge (.with | default dict) $role (dict "router" (include "vllm-pd-nccl.routerName" .))) -}}
{{- end }}

{{/*
vllm-pd-nccl.routerName: name of the router's Service.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "router") -}}
{{- end }}

{{/*
vllm-pd-nccl.routerPeer: the router's pods, as a peer of a NetworkPolicy.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerPeer" -}}
podSelector:
  matchLabels:
    {{- include "vllm-common.selectorLabels" (dict "root" .root "name" "vllm-pd-nccl" "component" "router") | nindent 4 }}
{{- end }}

{{/*
vllm-pd-nccl.clients: who may reach an engine's HTTP port: the router, and the release's own test.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.clients" -}}
- {{- include "vllm-pd-nccl.routerPeer" . | nindent 2 }}
- podSelector:
    matchLabels:
      app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
      app.kubernetes.io/component: test
{{- end }}

{{/*
vllm-pd-nccl.engines: prefill and decode of this release, which may reach each other on every port: UCX and NCCL
choose theirs freely.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.engines" -}}
{{- range $role := list "prefill" "decode" }}
- podSelector:
    {{- include (printf "vllm-pd-nccl.%s" $role) (dict "root" $.root "object" "vllm-common.memberSelector") | nindent 4 }}
{{- end }}
{{- end }}

{{/*
vllm-pd-nccl.testRoles: where the test of the release finds the engines, as a JSON map.
Parameters: root; `values`, the values of this chart.
*/}}
{{- define "vllm-pd-nccl.testRoles" -}}
{{- $roles := dict -}}
{{- range $component := list "prefill" "decode" -}}
{{- $_ := set $roles $component (printf "%s:%d" (include "vllm-common.fullname" (dict "root" $.root "component" $component)) (int64 (index $.values $component).port)) -}}
{{- end -}}
{{- toJson $roles -}}
{{- end }}
