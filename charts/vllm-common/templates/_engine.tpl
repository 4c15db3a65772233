{{/*
vllm-common.enginePod: the pod template of every engine. Roles differ by data only.
Parameters: the role context.
*/}}
{{- define "vllm-common.enginePod" -}}
metadata:
  labels:
    {{- include "vllm-common.podLabels" (merge (dict "extra" .role.labels) .) | nindent 4 }}
  {{- with merge (include "vllm-common.kvAnnotations" . | fromYaml) (.ownAnnotations | default dict) (deepCopy .role.annotations) (deepCopy .root.Values.global.vllm.annotations) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- $spec := include "vllm-common.podSpec" . | fromYaml }}
  {{- mergeOverwrite $spec (deepCopy .role.extraPodSpec) | toYaml | nindent 2 }}
{{- end }}

{{/*
vllm-common.podSpec: the pod's specification before the user's extra fields.
Parameters: the role context.
*/}}
{{- define "vllm-common.podSpec" -}}
automountServiceAccountToken: {{ eq (.token | default "") "true" }}
enableServiceLinks: false
serviceAccountName: {{ include "vllm-common.serviceAccountName" . | quote }}
terminationGracePeriodSeconds: {{ include "vllm-common.gracePeriodSeconds" . }}
securityContext:
  {{- include "vllm-common.podSecurityContext" . | nindent 2 }}
{{- include "vllm-common.pullSecrets" . }}
{{- include "vllm-common.scheduling" . }}
{{- with concat .role.extraInitContainers (.sidecars | default list) }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  {{- $container := include "vllm-common.engineContainer" . | fromYaml }}
  - {{- mergeOverwrite $container (deepCopy .role.extraContainerSpec) | toYaml | nindent 4 }}
  {{- with .role.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
  {{- include "vllm-common.volumes" . | nindent 2 }}
{{- end }}

{{/*
vllm-common.engineContainer: the container that runs `vllm serve`, or the simulator. The command is written out
because private images need not have the official entrypoint.
Parameters: the role context.
*/}}
{{- define "vllm-common.engineContainer" -}}
name: vllm
image: {{ include "vllm-common.image" . }}
imagePullPolicy: {{ (ternary .root.Values.global.vllm.simulator.image .root.Values.global.vllm.image (ne (include "vllm-common.simulated" .) "")).pullPolicy }}
command: {{ ternary "[/app/llm-d-inference-sim]" "[vllm, serve]" (ne (include "vllm-common.simulated" .) "") }}
args:
  {{- include "vllm-common.arguments" . | fromJsonArray | toYaml | nindent 2 }}
env:
  {{- include "vllm-common.environment" . | nindent 2 }}
{{- with .role.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .member }}
ports:
  {{- range include "vllm-common.httpPorts" . | fromJsonArray }}
  - name: {{ .name }}
    containerPort: {{ int64 .number }}
  {{- end }}
  {{- if gt (include "vllm-common.servers" . | int64) 1 }}
  - name: health
    containerPort: {{ include "vllm-common.healthPort" . }}
  {{- end }}
  {{- range $name, $port := .ports }}
  - name: {{ $name }}
    containerPort: {{ int64 $port }}
  {{- end }}
{{- include "vllm-common.probes" . }}
{{- end }}
{{ include "vllm-common.lifecycle" . }}
resources:
  {{- include "vllm-common.resources" . | nindent 2 }}
securityContext:
  {{- include "vllm-common.containerSecurityContext" . | nindent 2 }}
volumeMounts:
  {{- include "vllm-common.volumeMounts" . | nindent 2 }}
{{- end }}
