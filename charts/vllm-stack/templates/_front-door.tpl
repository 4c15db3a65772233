{{/*
vllm-stack.target: the role behind the front door, as YAML: `layer`, and `name` and `component` of its role context.
The rendering fails when the layer is not enabled.
Parameters: the top context.
*/}}
{{- define "vllm-stack.target" -}}
{{- $targets := dict
  "base" (dict "layer" "base" "name" "vllm-base" "component" "server")
  "pdNccl" (dict "layer" "pdNccl" "name" "vllm-pd-nccl" "component" "router") -}}
{{- $target := index $targets .Values.frontDoor.to -}}
{{- if not (index .Values $target.layer).enabled -}}
{{- printf "frontDoor.to: the layer %s is not enabled; set %s.enabled to true, or frontDoor.to to a layer that runs" $target.layer $target.layer | include "vllm-common.fail" -}}
{{- end -}}
{{- toYaml $target -}}
{{- end }}

{{/*
vllm-stack.frontDoorMetadata: metadata of a front door object.
Parameters: root; `annotations`, a map.
*/}}
{{- define "vllm-stack.frontDoorMetadata" -}}
{{- include "vllm-common.metadata" (dict "root" .root "name" "vllm-stack" "component" "front-door" "annotations" .annotations) -}}
{{- end }}

{{/*
vllm-stack.frontDoorName: name of the front door Service.
Parameters: the top context.
*/}}
{{- define "vllm-stack.frontDoorName" -}}
{{- include "vllm-common.fullname" (dict "root" . "component" "front-door") -}}
{{- end }}
