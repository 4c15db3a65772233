{{/*
vllm-common.serviceAccount: the account of a role's pods.
Parameters: the role context.
*/}}
{{- define "vllm-common.serviceAccount" -}}
{{- if .role.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "vllm-common.metadata" (merge (dict "objectName" (include "vllm-common.serviceAccountName" .) "annotations" .role.serviceAccount.annotations) .) | nindent 2 }}
automountServiceAccountToken: false
{{- end }}
{{- end }}
