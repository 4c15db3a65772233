{{/*
vllm-common.gpus: GPUs of one pod, one for each of its ranks; 0 on CPU and for the simulator.
Parameters: the role context.
*/}}
{{- define "vllm-common.gpus" -}}
{{- if or (eq .root.Values.global.vllm.accelerator "cpu") (include "vllm-common.simulated" .) -}}
0
{{- else -}}
{{- include "vllm-common.podRanks" . -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.gpuResource: name of the GPU resource, or nothing on CPU.
Parameters: the role context.
*/}}
{{- define "vllm-common.gpuResource" -}}
{{- .role.resources.gpuResource | default (include "vllm-common.accelerator" . | fromJson).gpuResource | default "" -}}
{{- end }}

{{/*
vllm-common.amount: a Kubernetes quantity as a plain number.
Parameters: the quantity.
*/}}
{{- define "vllm-common.amount" -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (index $units (regexFind "[A-Za-z]*$" .) | float64) -}}
{{- end }}

{{/*
vllm-common.plusGiB: a quantity and some GiB more; the quantity itself where there is nothing to add.
Parameters: quantity, gib.
*/}}
{{- define "vllm-common.plusGiB" -}}
{{- if eq (int64 .gib) 0 -}}
{{- .quantity -}}
{{- else -}}
{{- printf "%dMi" (addf (divf (include "vllm-common.amount" .quantity) 1048576) (mul (int64 .gib) 1024) | ceil | int64) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.resources: the container's resources. Extended resources need equal requests and limits, and the simulator
needs none; host memory of KV connector and tiers comes on top.
Parameters: the role context.
*/}}
{{- define "vllm-common.resources" -}}
{{- $extended := dict -}}
{{- range $name, $count := ternary dict .role.resources.extended (ne (include "vllm-common.simulated" .) "") }}{{ $_ := set $extended $name (int64 $count | toString) }}{{ end -}}
{{- if ne (include "vllm-common.gpus" .) "0" }}{{ $_ := set $extended (include "vllm-common.gpuResource" .) (include "vllm-common.gpus" .) }}{{ end -}}
{{- $resources := dict -}}
{{- range $kind := list "requests" "limits" -}}
{{- $amounts := deepCopy $extended -}}
{{- range $name, $quantity := index $.role.resources $kind }}{{ if $quantity }}{{ $_ := set $amounts $name $quantity }}{{ end }}{{ end -}}
{{- with $amounts.memory }}{{ $_ := set $amounts "memory" (include "vllm-common.plusGiB" (dict "quantity" . "gib" (include "vllm-common.kvHostMemoryGiB" $))) }}{{ end -}}
{{- if $amounts }}{{ $_ := set $resources $kind $amounts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}
