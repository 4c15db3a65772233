{{/*
vllm-pd-nccl.validate: what only both roles together show. Each role's own mistakes are told by vllm-common.validate.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.validate" -}}
{{- $values := .root.Values -}}
{{- $vllm := $values.global.vllm -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $connector := $vllm.kvTransfer.connector -}}
{{- $prefill := int64 $values.prefill.parallelism.tensor -}}
{{- $decode := int64 $values.decode.parallelism.tensor -}}
{{- $large := max $prefill $decode -}}
{{- $small := min $prefill $decode -}}
{{- $messages := list -}}
{{- if ne (int64 $values.prefill.port) (int64 $values.decode.port) -}}
{{- $messages = append $messages (printf "%sdecode.port: %d, but prefill has %d, and the router looks for all engines on one port; set them equal" $at (int64 $values.decode.port) (int64 $values.prefill.port)) -}}
{{- end -}}
{{- if and (eq $connector "p2pNccl") (ne $prefill $decode) -}}
{{- $messages = append $messages (printf "%sdecode.parallelism.tensor: %d, but prefill has %d, and p2pNccl needs them equal" $at $decode $prefill) -}}
{{- else if ne (mod $large $small) 0 -}}
{{- $messages = append $messages (printf "%sdecode.parallelism.tensor: %d, but prefill has %d, and one must divide the other" $at $decode $prefill) -}}
{{- else if and (eq $connector "nixl") (gt $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "nixlPrefillTpLarger"))) -}}
{{- $messages = append $messages (printf "%sprefill.parallelism.tensor: %d, but decode has %d, and NIXL of vLLM %s needs decode to have at least as many (0.14.0 does not)" $at $prefill $decode $vllm.version) -}}
{{- else if and (eq $connector "mooncake") (ne $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "mooncakeTensorDiffers"))) -}}
{{- $messages = append $messages (printf "%sdecode.parallelism.tensor: %d, but prefill has %d, and MooncakeConnector of vLLM %s needs them equal (0.19.0 does not)" $at $decode $prefill $vllm.version) -}}
{{- end -}}
{{- if and (eq $connector "p2pNccl") (gt (int64 $values.router.replicas) 1) -}}
{{- $messages = append $messages (printf "%srouter.replicas: %d, but engines of p2pNccl register with one router only; set 1" $at (int64 $values.router.replicas)) -}}
{{- end -}}
{{- if and (eq $connector "p2pNccl") $values.router.autoscaling.enabled -}}
{{- $messages = append $messages (printf "%srouter.autoscaling.enabled: engines of p2pNccl register with one router only; set false" $at) -}}
{{- end -}}
{{- if $vllm.tls.secretName -}}
{{- $messages = append $messages "global.vllm.tls.secretName: vllm-router speaks plain HTTP on both sides; end TLS at the Ingress or Gateway before the front door, and leave this empty" -}}
{{- end -}}
{{- if and $vllm.auth.apiKeySecret.name (eq $values.router.clientAuth "engines") -}}
{{- $messages = append $messages (printf "global.vllm.auth.apiKeySecret: vllm-router checks no key and adds the engines' own to every request, so everybody who reaches the front door is let in; check keys at a gateway before it and set %srouter.clientAuth to gateway" $at) -}}
{{- end -}}
{{- if and $values.router.autoscaling.enabled (gt (int64 $values.router.autoscaling.minReplicas) (int64 $values.router.autoscaling.maxReplicas)) -}}
{{- $messages = append $messages (printf "%srouter.autoscaling.minReplicas: %d is more than maxReplicas %d" $at (int64 $values.router.autoscaling.minReplicas) (int64 $values.router.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- range $place := list "prefill" "decode" -}}
{{- $of := include (printf "vllm-pd-nccl.%s" $place) (dict "root" $.root "object" "vllm-common.findings") -}}
{{- $messages = concat $messages (without (splitList "\n" $of) "") -}}
{{- end -}}
{{- include "vllm-common.fail" (join "\n" (uniq $messages)) -}}
{{- end }}
