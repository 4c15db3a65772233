{{/*
vllm-llmd.newest: the name among facts whose window holds the release, the newest where several do.
Parameters: root; of, a map of vllm-common.llmdFacts.
*/}}
{{- define "vllm-llmd.newest" -}}
{{- $newest := dict "since" "0.0.0" -}}
{{- range $name, $window := index (include "vllm-common.llmdFacts" . | fromJson) .of -}}
{{- $since := $window.since | default "0.0.1" -}}
{{- if and (include "vllm-common.llmdWithin" (dict "root" $.root "window" $window)) (semverCompare (printf ">%s" $newest.since) $since) }}{{ $newest = dict "since" $since "name" $name }}{{ end -}}
{{- end -}}
{{- $newest.name -}}
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
