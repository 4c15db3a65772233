{{/*
vllm-common.llmdVersion: the release of llm-d's router.
Parameters: root.
*/}}
{{- define "vllm-common.llmdVersion" -}}
{{- .root.Values.global.vllm.llmd.version -}}
{{- end }}

{{/*
vllm-common.llmdWithin: "true" when the release lies in a window of vllm-common.llmdFacts, else nothing.
Parameters: root; window, a map with since and until, each of which may be absent.
*/}}
{{- define "vllm-common.llmdWithin" -}}
{{- $version := include "vllm-common.llmdVersion" . -}}
{{- $since := or (not .window.since) (semverCompare (printf ">=%s" (.window.since | default "0.0.0")) $version) -}}
{{- $before := or (not .window.until) (semverCompare (printf "<%s" (.window.until | default "0.0.0")) $version) -}}
{{- if and $since $before }}true{{ end -}}
{{- end }}

{{/*
vllm-common.llmdKnows: "true" when a program of the release has an option.
Parameters: root; program, picker or sidecar; option.
*/}}
{{- define "vllm-common.llmdKnows" -}}
{{- $options := index (include "vllm-common.llmdFacts" . | fromJson).options .program -}}
{{- if hasKey $options .option }}{{ include "vllm-common.llmdWithin" (dict "root" .root "window" (index $options .option)) }}{{ end -}}
{{- end }}

{{/*
vllm-common.llmdImage: reference of a program's image. The digest wins over the tag; the release's own repository and tag
fill what is empty.
Parameters: root; program, picker or sidecar; image, its values.
*/}}
{{- define "vllm-common.llmdImage" -}}
{{- $repository := .image.repository -}}
{{- range index (include "vllm-common.llmdFacts" . | fromJson).images .program -}}
{{- if and (not $repository) (include "vllm-common.llmdWithin" (dict "root" $.root "window" .)) }}{{ $repository = .repository }}{{ end -}}
{{- end -}}
{{- if .image.digest }}{{ $repository }}@{{ .image.digest }}{{ else }}{{ $repository }}:{{ .image.tag | default (printf "v%s" (include "vllm-common.llmdVersion" .)) }}{{ end -}}
{{- end }}

{{/*
vllm-common.llmdFlags: a map of flags of one of llm-d's programs, as a JSON list. They know no --no- form.
Parameters: the map.
*/}}
{{- define "vllm-common.llmdFlags" -}}
{{- $args := dict -}}
{{- range $flag, $value := . }}{{ $_ := set $args $flag (ternary (toString $value) $value (kindIs "bool" $value)) }}{{ end -}}
{{- include "vllm-common.flags" (dict "args" $args "lists" list "switches" list "repeated" (keys $args)) -}}
{{- end }}

{{/*
vllm-common.plainResources: a container's resources, without what is left empty.
Parameters: requests and limits.
*/}}
{{- define "vllm-common.plainResources" -}}
{{- $resources := dict -}}
{{- range $kind := list "requests" "limits" -}}
{{- $amounts := dict -}}
{{- range $name, $quantity := index $ $kind }}{{ if $quantity }}{{ $_ := set $amounts $name $quantity }}{{ end }}{{ end -}}
{{- if $amounts }}{{ $_ := set $resources $kind $amounts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}

{{/*
vllm-common.poolLabels: labels by which the picker finds an engine and knows its role.
Parameters: root; role, prefill or decode.
*/}}
{{- define "vllm-common.poolLabels" -}}
{{ include "vllm-common.poolSelector" . }}
llm-d.ai/role: {{ .role }}
{{- end }}

{{/*
vllm-common.poolSelector: labels of every engine of this release's pool, and of no other pod.
Parameters: root.
*/}}
{{- define "vllm-common.poolSelector" -}}
llm-d.ai/inference-serving: "true"
vllm-phases.dev/pool: {{ include "vllm-common.poolName" . }}
{{- end }}

{{/*
vllm-common.poolName: name of the pool of engines, which is that of the InferencePool where there is one.
Parameters: root.
*/}}
{{- define "vllm-common.poolName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "pool") -}}
{{- end }}

