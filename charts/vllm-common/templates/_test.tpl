{{/*
vllm-common.test: the pod of `helm test`. It runs files/helm_test.py in the engine's own image, so that nothing
else need be pulled, and prefers the nodes that have the image already.
Parameters: the role context of the engines; `owner`, the chart whose test it is; `service` and `port`, the Service
to ask.
*/}}
{{- define "vllm-common.test" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- if $vllm.test.enabled -}}
{{- $hook := dict "helm.sh/hook" "test" "helm.sh/hook-delete-policy" "before-hook-creation" -}}
apiVersion: v1
kind: Pod
metadata:
  {{- include "vllm-common.metadata" (dict "root" .root "name" .owner "component" "test" "annotations" $hook) | nindent 2 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- include "vllm-common.pullSecrets" . | indent 2 }}
  {{- with .role.scheduling.nodeSelector }}
  nodeSelector: {{ toJson . }}
  {{- end }}
  {{- with .role.scheduling.tolerations }}
  tolerations: {{ toJson . }}
  {{- end }}
  affinity:
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "vllm-common.selectorLabels" . | nindent 16 }}
  securityContext:
    {{- include "vllm-common.podSecurityContext" . | nindent 4 }}
  containers:
    - name: test
      image: {{ include "vllm-common.image" . }}
      imagePullPolicy: {{ $vllm.image.pullPolicy }}
      command: [python3, -c]
      args:
        - |
          {{- (index .root.Subcharts "vllm-common").Files.Get "files/helm_test.py" | nindent 10 }}
      env:
        - name: VLLM_TEST_URL
          value: {{ printf "%s://%s:%d" (ternary "https" "http" (ne $vllm.tls.secretName "")) .service (int64 .port) }}
        - name: VLLM_TEST_MODEL
          value: {{ include "vllm-common.servedNames" . | fromJsonArray | first | quote }}
        - name: VLLM_TEST_TIMEOUT
          value: {{ int64 $vllm.test.timeoutSeconds | quote }}
        {{- with $vllm.auth.apiKeySecret }}
        {{- if .name }}
        - name: VLLM_TEST_API_KEY
          valueFrom:
            secretKeyRef:
              name: {{ .name }}
              key: {{ .key }}
        {{- end }}
        {{- end }}
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {memory: 256Mi}
      securityContext:
        {{- include "vllm-common.containerSecurityContext" . | nindent 8 }}
{{- end }}
{{- end }}
