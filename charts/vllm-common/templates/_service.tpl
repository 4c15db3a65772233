{{/*
vllm-common.service: the Service of a role.
Parameters: the role context; `service`, a block with type, port and annotations.
*/}}
{{- define "vllm-common.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "vllm-common.metadata" (merge (dict "annotations" .service.annotations) .) | nindent 2 }}
spec:
  type: {{ .service.type }}
  selector:
    {{- include "vllm-common.selectorLabels" . | nindent 4 }}
  ports:
    - name: http
      port: {{ int64 .service.port }}
      targetPort: http
{{- end }}
