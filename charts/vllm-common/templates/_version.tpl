{{/*
vllm-common.version: the engine version as three numbers, so that it compares as a semantic version.
Parameters: root.
*/}}
{{- define "vllm-common.version" -}}
{{- regexFind "^[0-9]+\\.[0-9]+\\.[0-9]+" .root.Values.global.vllm.version -}}
{{- end }}

{{/*
vllm-common.has: "true" when the engine version has a feature of vllm-common.facts, else nothing.
Parameters: root, feature.
*/}}
{{- define "vllm-common.has" -}}
{{- $feature := index (include "vllm-common.facts" . | fromJson).features .feature -}}
{{- $version := include "vllm-common.version" . -}}
{{- $since := semverCompare (printf ">=%s" $feature.since) $version -}}
{{- $before := or (not $feature.until) (semverCompare (printf "<%s" ($feature.until | default "0.0.0")) $version) -}}
{{- if and $since $before }}true{{ end -}}
{{- end }}

{{/*
vllm-common.accelerator: facts of the release's accelerator, as JSON: repository, tag, gpuResource, nonRootSince.
Parameters: root.
*/}}
{{- define "vllm-common.accelerator" -}}
{{- index (include "vllm-common.facts" . | fromJson).images .root.Values.global.vllm.accelerator | toJson -}}
{{- end }}
