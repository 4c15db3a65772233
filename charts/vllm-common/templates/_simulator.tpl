{{/*
vllm-common.simulated: "true" where the simulator answers in the engines' place, else nothing.
Parameters: root.
*/}}
{{- define "vllm-common.simulated" -}}
{{- if .root.Values.global.vllm.simulator.enabled }}true{{ end -}}
{{- end }}

{{/*
vllm-common.simulatorOptions: options that the simulator's release knows, as a JSON list.
Parameters: root.
*/}}
{{- define "vllm-common.simulatorOptions" -}}
{{- $version := .root.Values.global.vllm.simulator.version -}}
{{- $known := list -}}
{{- range $option, $window := (include "vllm-common.facts" . | fromJson).simulator.options -}}
{{- if or (not $window.since) (semverCompare (printf ">=%s" ($window.since | default "0.0.0")) $version) }}{{ $known = append $known $option }}{{ end -}}
{{- end -}}
{{- toJson $known -}}
{{- end }}

{{/*
vllm-common.simulatorArguments: the container's args as a JSON list. Of vLLM's flags only those are left that the
simulator has too; its data parallel ranks would each have a port of their own, so those are not.
Parameters: the role context; args, vLLM's flags.
*/}}
{{- define "vllm-common.simulatorArguments" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $facts := (include "vllm-common.facts" . | fromJson).simulator -}}
{{- $known := include "vllm-common.simulatorOptions" . | fromJsonArray -}}
{{- $args := dict "model" $vllm.model.name -}}
{{- range $flag, $value := omit .args "data-parallel-size" -}}
{{- if has ($flag | replace "_" "-") $known }}{{ $_ := set $args ($flag | replace "_" "-") $value }}{{ end -}}
{{- end -}}
{{- $switches := list -}}
{{- range $known }}{{ if not (has (printf "no-%s" .) $known) }}{{ $switches = append $switches . }}{{ end }}{{ end -}}
{{- include "vllm-common.flags" (dict "args" (merge $args (deepCopy $vllm.simulator.args) (dict "force-dummy-tokenizer" true)) "lists" $facts.lists "switches" $switches "repeated" list) -}}
{{- end }}

{{/*
vllm-common.simulatorImage: reference of the simulator's image.
Parameters: root.
*/}}
{{- define "vllm-common.simulatorImage" -}}
{{- $simulator := .root.Values.global.vllm.simulator -}}
{{- $repository := $simulator.image.repository | default (include "vllm-common.facts" . | fromJson).simulator.image -}}
{{- if $simulator.image.digest }}{{ $repository }}@{{ $simulator.image.digest }}{{ else }}{{ $repository }}:{{ $simulator.image.tag | default (printf "v%s" $simulator.version) }}{{ end -}}
{{- end }}

{{/*
vllm-common.simulatorEnvironment: the simulator's variables as a JSON map. It tells in its answers which pod it is.
Parameters: none.
*/}}
{{- define "vllm-common.simulatorEnvironment" -}}
{{- $env := dict -}}
{{- range $name, $field := dict "POD_NAME" "name" "POD_NAMESPACE" "namespace" -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" (printf "metadata.%s" $field)))) -}}
{{- end -}}
{{- toJson $env -}}
{{- end }}

{{/*
vllm-common.bootstrapPort: where decode asks a prefill engine of Mooncake; of a simulator its HTTP port.
Parameters: root; port, the HTTP port of prefill.
*/}}
{{- define "vllm-common.bootstrapPort" -}}
{{- ternary .port .root.Values.global.vllm.kvTransfer.mooncake.bootstrapPort (ne (include "vllm-common.simulated" .) "") | int64 -}}
{{- end }}
