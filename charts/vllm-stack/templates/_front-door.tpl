{{/*
vllm-stack.target: the role behind the front door, as a role context.
Use: include "vllm-stack.target" . | fromYaml gives `name`, `component` and `layer`; the rest is added by the caller.
Parameters: the top context.
*/}}
{{- define "vllm-stack.target" -}}
{{- $targets := dict
  "base" (dict "layer" "base" "name" "vllm-base" "component" "server") -}}
{{- index $targets .Values.frontDoor.to | toYaml -}}
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

{{/*
vllm-stack.validate: what only the umbrella can see.
Parameters: the top context.
*/}}
{{- define "vllm-stack.validate" -}}
{{- $layer := (include "vllm-stack.target" . | fromYaml).layer -}}
{{- $messages := "" -}}
{{- if not (index .Values $layer).enabled -}}
{{- $messages = printf "frontDoor.to: the layer %s is not enabled; set %s.enabled to true, or frontDoor.to to a layer that runs\n" $layer $layer -}}
{{- end -}}
{{- include "vllm-common.fail" $messages -}}
{{- end }}
