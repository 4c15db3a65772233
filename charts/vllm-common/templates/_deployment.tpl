{{/*
vllm-common.deployment: the Deployment of a role. `replicas` is left out where an autoscaler owns it, so that an
upgrade does not undo its work. The deadline leaves one pod the time to end and its successor the time to start.
Parameters: the role context.
*/}}
{{- define "vllm-common.deployment" -}}
{{- if eq .role.workload "deployment" -}}
{{- include "vllm-common.validate" . -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  {{- if eq .role.autoscaling.type "none" }}
  replicas: {{ int64 .role.replicas }}
  {{- end }}
  progressDeadlineSeconds: {{ add .role.startup.budgetSeconds (include "vllm-common.gracePeriodSeconds" .) 60 }}
  strategy:
    type: {{ .role.rollout.strategy }}
    {{- if eq .role.rollout.strategy "RollingUpdate" }}
    rollingUpdate:
      maxSurge: {{ include "vllm-common.scalar" .role.rollout.maxSurge }}
      maxUnavailable: {{ include "vllm-common.scalar" .role.rollout.maxUnavailable }}
    {{- end }}
  selector:
    matchLabels:
      {{- include "vllm-common.selectorLabels" . | nindent 6 }}
  template:
    {{- include "vllm-common.enginePod" . | nindent 4 }}
{{- end }}
{{- end }}
