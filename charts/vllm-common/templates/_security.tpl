{{/*
vllm-common.user: UID of the engine process: the user's choice, else the image's own non-root user where the
version has one, else 0; that of the simulator's image. Nothing where the platform assigns it.
Parameters: root.
*/}}
{{- define "vllm-common.user" -}}
{{- $security := .root.Values.global.vllm.security -}}
{{- $nonRootSince := (include "vllm-common.accelerator" . | fromJson).nonRootSince -}}
{{- if $security.assignedUid -}}
{{- else if not (kindIs "invalid" $security.runAsUser) -}}
{{- int64 $security.runAsUser -}}
{{- else if include "vllm-common.simulated" . -}}
65532
{{- else if and $nonRootSince (semverCompare (printf ">=%s" ($nonRootSince | default "0.0.0")) (include "vllm-common.version" .)) -}}
2000
{{- else -}}
0
{{- end -}}
{{- end }}

{{/*
vllm-common.podSecurityContext: the pod's security context. Group 0 owns the image's writable folders.
Parameters: root.
*/}}
{{- define "vllm-common.podSecurityContext" -}}
{{- $user := include "vllm-common.user" . -}}
seccompProfile:
  type: RuntimeDefault
{{- if ne $user "0" }}
runAsNonRoot: true
{{- end }}
{{- if $user }}
runAsUser: {{ $user }}
runAsGroup: 0
fsGroup: 0
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- end }}

{{/*
vllm-common.containerSecurityContext: the container's security context.
Parameters: root.
*/}}
{{- define "vllm-common.containerSecurityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: {{ .root.Values.global.vllm.security.readOnlyRootFilesystem }}
{{- end }}
