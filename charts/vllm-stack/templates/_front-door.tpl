{{/*
vllm-stack.target: the role behind the front door, as YAML: `layer`, and `name` and `component` of its role context.
Where a Gateway is the proxy of llmd also `selector` and `port` of its pods, if it lies in this namespace, and `request`,
what it lets through. The rendering fails when the front door cannot lead there.
Parameters: the top context.
*/}}
{{- define "vllm-stack.target" -}}
{{- $targets := dict
  "base" (dict "layer" "base" "name" "vllm-base" "component" "server")
  "pdNccl" (dict "layer" "pdNccl" "name" "vllm-pd-nccl" "component" "router")
  "llmd" (dict "layer" "llmd" "name" "vllm-llmd" "component" "proxy")
  "none" (dict "layer" "llmd" "name" "vllm-llmd" "component" "proxy") -}}
{{- $target := index $targets .Values.frontDoor.to -}}
{{- if not (index .Values $target.layer).enabled -}}
{{- printf "frontDoor.to: the layer %s is not enabled; set %s.enabled to true, or frontDoor.to to a layer that runs" $target.layer $target.layer | include "vllm-common.fail" -}}
{{- end -}}
{{- if eq $target.layer "llmd" -}}
{{- include "vllm-stack.validateGateway" . | include "vllm-common.fail" -}}
{{- if eq .Values.llmd.proxy.type "gateway" }}{{ $target = merge $target (include "vllm-stack.gateway" . | fromJson) }}{{ end -}}
{{- end -}}
{{- toYaml $target -}}
{{- end }}

{{/*
vllm-stack.gateway: the Gateway of llmd, as JSON: `request`, what it lets through; and where it lies in this namespace
and labels its pods, `selector` and `port` of these.
Parameters: the top context.
*/}}
{{- define "vllm-stack.gateway" -}}
{{- $context := dict "root" . "values" .Values.llmd -}}
{{- $facts := (include "vllm-llmd.facts" . | fromJson).gateways -}}
{{- $found := dict "request" (include "vllm-llmd.gatewayRequest" $context | fromJson) -}}
{{- range include "vllm-llmd.gateways" $context | fromJsonArray -}}
{{- if and (eq .namespace $.Release.Namespace) (hasKey $facts $.Values.llmd.proxy.gateway.implementation) (not $found.selector) -}}
{{- $_ := set $found "selector" (dict $facts.label .name) -}}
{{- $_ := set $found "port" (include "vllm-llmd.gatewayListener" $context | fromJson).port -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/*
vllm-stack.validateGateway: what cannot be of front door and Gateway, one message a line.
Parameters: the top context.
*/}}
{{- define "vllm-stack.validateGateway" -}}
{{- $door := .Values.frontDoor -}}
{{- $gateway := eq .Values.llmd.proxy.type "gateway" -}}
{{- if and (eq $door.to "none") (not $gateway) }}
frontDoor.to: none is for a Gateway, to which clients speak instead; set llmd.proxy.type to gateway, or frontDoor.to to llmd
{{- end }}
{{- if and (eq $door.to "llmd") $gateway (not (include "vllm-stack.gateway" . | fromJson).selector) }}
frontDoor.to: a Service cannot lead to the pods of this Gateway, which {{ if eq .Values.llmd.proxy.gateway.implementation "other" }}are not known{{ else }}lie in another namespace{{ end }}; set none, and let clients speak to the Gateway
{{- end }}
{{- if and (eq $door.to "none") $door.ingress.enabled }}
frontDoor.ingress.enabled: without a front door there is nothing behind it; set false
{{- end }}
{{- if and $gateway $door.httpRoute.enabled }}
frontDoor.httpRoute.enabled: llmd makes the route of its Gateway itself, from llmd.proxy.gateway.route; set false
{{- end }}
{{- end }}

{{/*
vllm-stack.door: where clients enter, as JSON: `service`, the front door's or the address of a Gateway, `port`, and
`request`, what a Gateway lets through.
Parameters: the top context.
*/}}
{{- define "vllm-stack.door" -}}
{{- $target := include "vllm-stack.target" . | fromYaml -}}
{{- if eq .Values.frontDoor.to "none" -}}
{{- include "vllm-llmd.door" (dict "root" . "values" .Values.llmd) -}}
{{- else -}}
{{- dict "service" (include "vllm-stack.frontDoorName" .) "port" .Values.frontDoor.port "request" ($target.request | default dict) | toJson -}}
{{- end -}}
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
