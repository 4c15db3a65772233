{{/*
vllm-common.disruptionBudget: the PodDisruptionBudget of a role.
Parameters: the role context.
*/}}
{{- define "vllm-common.disruptionBudget" -}}
{{- if .role.disruption.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ include "vllm-common.scalar" .role.disruption.maxUnavailable }}
  selector:
    {{- include "vllm-common.memberSelector" . | nindent 4 }}
{{- end }}
{{- end }}
