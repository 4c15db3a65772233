{{/*
vllm-common.image: reference of the engine image, or of the simulator's. The digest wins over the tag; the official
repository and tag of version and accelerator fill what is empty.
Parameters: root.
*/}}
{{- define "vllm-common.image" -}}
{{- $image := .root.Values.global.vllm.image -}}
{{- $official := include "vllm-common.accelerator" . | fromJson -}}
{{- $repository := $image.repository | default $official.repository -}}
{{- if include "vllm-common.simulated" . -}}
{{- include "vllm-common.simulatorImage" . -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default ($official.tag | replace "{version}" .root.Values.global.vllm.version)) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.pullSecrets: the pod's imagePullSecrets.
Parameters: root.
*/}}
{{- define "vllm-common.pullSecrets" -}}
{{- with .root.Values.global.vllm.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
