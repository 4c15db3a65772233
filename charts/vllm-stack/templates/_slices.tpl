{{/* The layer hamiDecode beside the layer whose pool it joins: only the umbrella sees both. */}}

{{/*
vllm-stack.validateSlices: what cannot be of hamiDecode and its pool, one message a line.
Parameters: the top context.
*/}}
{{- define "vllm-stack.validateSlices" -}}
{{- $slices := .Values.hamiDecode -}}
{{- $pool := index .Values $slices.pool -}}
{{- $context := dict "root" . "slices" $slices "pool" $pool -}}
{{- if not $pool.enabled }}
hamiDecode.pool: the layer {{ $slices.pool }} is not enabled, and decode engines without prefill and front door serve nobody; set {{ $slices.pool }}.enabled to true, or hamiDecode.pool to the layer that runs
{{- else -}}
{{- if ne (int64 $slices.poolPort) (int64 $pool.prefill.port) }}
hamiDecode.poolPort: {{ int64 $slices.poolPort }}, but the pool is at {{ int64 $pool.prefill.port }}, the port of {{ $slices.pool }}.prefill; set them equal
{{- end }}
{{- include "vllm-stack.validateSlicedRanks" $context -}}
{{- if eq $slices.pool "llmd" }}{{ include "vllm-stack.validateSlicedLlmd" $context }}
{{- else if not $pool.router.sharedDecode }}
pdNccl.router.sharedDecode: false, so the router would find the decode engines of its own layer only; set true
{{- end }}
{{- end }}
{{- end }}

{{/* Parameters: root; slices and pool, values of hamiDecode and of the pool's layer. */}}
{{- define "vllm-stack.validateSlicedRanks" -}}
{{- $connector := .root.Values.global.vllm.kvTransfer.connector -}}
{{- $version := .root.Values.global.vllm.version -}}
{{- $prefill := int64 .pool.prefill.parallelism.tensor -}}
{{- $decode := int64 .slices.parallelism.tensor -}}
{{- if ne (mod (max $prefill $decode) (min $prefill $decode)) 0 }}
hamiDecode.parallelism.tensor: {{ $decode }}, but {{ .slices.pool }}.prefill has {{ $prefill }}, and one must divide the other
{{- else if and (eq $connector "nixl") (gt $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "nixlPrefillTpLarger"))) }}
hamiDecode.parallelism.tensor: {{ $decode }}, but {{ .slices.pool }}.prefill has {{ $prefill }}, and NIXL of vLLM {{ $version }} needs decode to have at least as many (0.14.0 does not)
{{- else if and (eq $connector "mooncake") (ne $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "mooncakeTensorDiffers"))) }}
hamiDecode.parallelism.tensor: {{ $decode }}, but {{ .slices.pool }}.prefill has {{ $prefill }}, and MooncakeConnector of vLLM {{ $version }} needs them equal (0.19.0 does not)
{{- end }}
{{- end }}

{{- define "vllm-stack.validateSlicedLlmd" -}}
{{- range $key, $value := .pool.routingSidecar -}}
{{- if ne (toJson $value) (index $.slices.routingSidecar $key | toJson) }}
hamiDecode.routingSidecar.{{ $key }}: differs from llmd.routingSidecar.{{ $key }}, but all decode engines of a pool work alike; set them equal
{{- end }}
{{- end -}}
{{- if eq .pool.endpointPicker.prefixCache.type "precise" }}
llmd.endpointPicker.prefixCache.type: precise, but engines of hamiDecode tell the picker nothing of their caches; set approximate
{{- end }}
{{- range $role := list "prefill" "decode" -}}
{{- if gt (include "vllm-common.servers" (dict "role" (index $.pool $role)) | int64) 1 }}
llmd.{{ $role }}.parallelism.loadBalancing: external gives the pool several ports, and pods of hamiDecode listen on one; set internal
{{- end }}
{{- end -}}
{{- if and (eq .pool.proxy.type "gateway") .root.Values.global.vllm.networkPolicy.enabled (not .slices.poolClients) }}
hamiDecode.poolClients: empty, so NetworkPolicies keep the Gateway of llmd.proxy from these engines; set its pods as a peer
{{- end }}
{{- end }}

{{/*
vllm-stack.testRoles: where the test of the release finds the engines of both roles, as a JSON map. Decode may be of two
layers; one without pods has no addresses.
Parameters: the top context; layer, an alias; of, the define of that layer's roles.
*/}}
{{- define "vllm-stack.testRoles" -}}
{{- $values := index .root.Values .layer -}}
{{- $roles := include .of (dict "root" .root "values" $values) | fromJson -}}
{{- $slices := .root.Values.hamiDecode -}}
{{- if and $slices.enabled (eq $slices.pool .layer) -}}
{{- $decode := printf "%s:%d" (include "vllm-common.fullname" (dict "root" .root "component" "hami-decode")) (int64 (ternary $slices.port $slices.poolPort (eq .layer "llmd"))) -}}
{{- $alone := and (eq $values.decode.autoscaling.type "none") (eq (int64 $values.decode.replicas) 0) -}}
{{- $_ := set $roles "decode" (ternary $decode (printf "%s %s" $roles.decode $decode) $alone) -}}
{{- end -}}
{{- toJson $roles -}}
{{- end }}
