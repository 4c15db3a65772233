{{/*
vllm-common.headlessService: a name that resolves to the address of every ready pod of a role.
Parameters: the role context.
*/}}
{{- define "vllm-common.headlessService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  selector:
    {{- include "vllm-common.selectorLabels" . | nindent 4 }}
  ports:
    {{- range include "vllm-common.httpPorts" . | fromJsonArray }}
    - name: {{ .name }}
      port: {{ int64 .number }}
      targetPort: {{ .name }}
    {{- end }}
{{- end }}

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
