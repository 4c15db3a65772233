{{/*
vllm-common.gpus: GPUs of one pod, derived from its parallelism; 0 on CPU.
Parameters: the role context.
*/}}
{{- define "vllm-common.gpus" -}}
{{- if eq .root.Values.global.vllm.accelerator "cpu" -}}
0
{{- else -}}
{{- mul .role.parallelism.tensor .role.parallelism.pipeline .role.parallelism.data -}}
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
vllm-common.resources: the container's resources. Extended resources need equal requests and limits.
Parameters: the role context.
*/}}
{{- define "vllm-common.resources" -}}
{{- $extended := dict -}}
{{- range $name, $count := .role.resources.extended }}{{ $_ := set $extended $name (int64 $count | toString) }}{{ end -}}
{{- if ne (include "vllm-common.gpus" .) "0" }}{{ $_ := set $extended (include "vllm-common.gpuResource" .) (include "vllm-common.gpus" .) }}{{ end -}}
{{- $resources := dict -}}
{{- range $kind := list "requests" "limits" -}}
{{- $amounts := deepCopy $extended -}}
{{- range $name, $quantity := index $.role.resources $kind }}{{ if $quantity }}{{ $_ := set $amounts $name $quantity }}{{ end }}{{ end -}}
{{- if $amounts }}{{ $_ := set $resources $kind $amounts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}
