{{/*
vllm-llmd.version: the release of llm-d's router.
Parameters: root.
*/}}
{{- define "vllm-llmd.version" -}}
{{- .root.Values.global.vllm.llmd.version -}}
{{- end }}

{{/*
vllm-llmd.within: "true" when the release lies in a window of vllm-llmd.facts, else nothing.
Parameters: root; window, a map with since and until, each of which may be absent.
*/}}
{{- define "vllm-llmd.within" -}}
{{- $version := include "vllm-llmd.version" . -}}
{{- $since := or (not .window.since) (semverCompare (printf ">=%s" (.window.since | default "0.0.0")) $version) -}}
{{- $before := or (not .window.until) (semverCompare (printf "<%s" (.window.until | default "0.0.0")) $version) -}}
{{- if and $since $before }}true{{ end -}}
{{- end }}

{{/*
vllm-llmd.newest: the name among facts whose window holds the release, the newest where several do.
Parameters: root; of, a map of vllm-llmd.facts.
*/}}
{{- define "vllm-llmd.newest" -}}
{{- $newest := dict "since" "0.0.0" -}}
{{- range $name, $window := index (include "vllm-llmd.facts" . | fromJson) .of -}}
{{- $since := $window.since | default "0.0.1" -}}
{{- if and (include "vllm-llmd.within" (dict "root" $.root "window" $window)) (semverCompare (printf ">%s" $newest.since) $since) }}{{ $newest = dict "since" $since "name" $name }}{{ end -}}
{{- end -}}
{{- $newest.name -}}
{{- end }}

{{/*
vllm-llmd.knows: "true" when a program of the release has an option.
Parameters: root; program, picker or sidecar; option.
*/}}
{{- define "vllm-llmd.knows" -}}
{{- $options := index (include "vllm-llmd.facts" . | fromJson).options .program -}}
{{- if hasKey $options .option }}{{ include "vllm-llmd.within" (dict "root" .root "window" (index $options .option)) }}{{ end -}}
{{- end }}

{{/*
vllm-llmd.image: reference of a program's image. The digest wins over the tag; the release's own repository and tag
fill what is empty.
Parameters: root; program, picker or sidecar; image, its values.
*/}}
{{- define "vllm-llmd.image" -}}
{{- $repository := .image.repository -}}
{{- range index (include "vllm-llmd.facts" . | fromJson).images .program -}}
{{- if and (not $repository) (include "vllm-llmd.within" (dict "root" $.root "window" .)) }}{{ $repository = .repository }}{{ end -}}
{{- end -}}
{{- if .image.digest }}{{ $repository }}@{{ .image.digest }}{{ else }}{{ $repository }}:{{ .image.tag | default (printf "v%s" (include "vllm-llmd.version" .)) }}{{ end -}}
{{- end }}

{{/*
vllm-llmd.resources: a container's resources, without what is left empty.
Parameters: requests and limits.
*/}}
{{- define "vllm-llmd.resources" -}}
{{- $resources := dict -}}
{{- range $kind := list "requests" "limits" -}}
{{- $amounts := dict -}}
{{- range $name, $quantity := index $ $kind }}{{ if $quantity }}{{ $_ := set $amounts $name $quantity }}{{ end }}{{ end -}}
{{- if $amounts }}{{ $_ := set $resources $kind $amounts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}

{{/*
vllm-llmd.plainPodSecurityContext: security context of pods whose images run as any user: picker and proxy.
Parameters: root.
*/}}
{{- define "vllm-llmd.plainPodSecurityContext" -}}
runAsNonRoot: true
{{- if not .root.Values.global.vllm.security.assignedUid }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}
