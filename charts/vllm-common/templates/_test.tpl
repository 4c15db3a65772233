{{/*
vllm-common.test: the pod of `helm test`. It runs files/helm_test.py in the engine's own image, so that nothing
else need be pulled, and prefers the nodes that have the image already.
Parameters: the role context of the engines; `owner`, the chart whose test it is; `service` and `port`, the Service
to ask; optional `roles`, prefill and decode with host:port of their headless Services, and `request`, what a request
needs to be let through there: https, host, headers and prefix of the path.
*/}}
{{- define "vllm-common.test" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- if $vllm.test.enabled -}}
{{- $request := .request | default dict -}}
{{- $https := or (ne $vllm.tls.secretName "") ($request.https | default false) -}}
{{- $hook := dict "helm.sh/hook" "test" "helm.sh/hook-delete-policy" "before-hook-creation" -}}
apiVersion: v1
kind: Pod
metadata:
  {{- include "vllm-common.metadata" (dict "root" .root "name" .owner "component" "test" "annotations" $hook) | nindent 2 }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "vllm-common.pullSecrets" . }}{{ . | indent 2 }}{{ end }}
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
          value: {{ printf "%s://%s:%d%s" (ternary "https" "http" $https) ($request.host | default .service) (int64 .port) ($request.prefix | default "") }}
        {{- if $request.host }}
        - name: VLLM_TEST_SERVICE
          value: {{ .service }}
        {{- end }}
        {{- with $request.headers }}
        - name: VLLM_TEST_HEADERS
          value: {{ toJson . | quote }}
        {{- end }}
        - name: VLLM_TEST_MODEL
          value: {{ include "vllm-common.servedNames" . | fromJsonArray | first | quote }}
        - name: VLLM_TEST_TIMEOUT
          value: {{ int64 $vllm.test.timeoutSeconds | quote }}
        {{- with .roles }}
        {{- include "vllm-common.transferTest" (merge (dict "roles" .) $) | nindent 8 }}
        {{- end }}
        {{- with $vllm.auth.apiKeySecret }}
        {{- if .name }}
        - name: VLLM_TEST_API_KEY
          valueFrom:
            secretKeyRef:
              name: {{ .name | quote }}
              key: {{ .key | quote }}
        {{- end }}
        {{- end }}
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {memory: 256Mi}
      securityContext:
        {{- include "vllm-common.containerSecurityContext" . | nindent 8 }}
{{- end }}
{{- end }}

{{/*
vllm-common.transferTest: variables that tell the test where the roles are and what their connector counts. Hits of
the external prefix cache prove nothing: they also rise when a transfer fails.
Parameters: root; `roles`, a map of prefill and decode.
*/}}
{{- define "vllm-common.transferTest" -}}
{{- $facts := (include "vllm-common.facts" . | fromJson).metrics -}}
{{- $version := include "vllm-common.version" . -}}
{{- $by := dict "nixl" (dict "moved" (list "nixl_xfer_time_seconds") "failed" (list "nixl_num_failed_transfers"))
  "mooncake" (dict "moved" (list "mooncake_xfer_time_seconds") "failed" (list "mooncake_num_failed_transfers" "mooncake_num_failed_recvs")) -}}
{{- range $role, $address := .roles }}
- name: VLLM_TEST_{{ upper $role }}
  value: {{ $address }}
{{- end }}
{{- range $what, $metrics := index $by .root.Values.global.vllm.kvTransfer.connector | default dict }}
{{- $samples := list }}
{{- range $metrics }}
{{- $fact := index $facts . }}
{{- if semverCompare (printf ">=%s" $fact.since) $version }}{{ $samples = append $samples (print $fact.name (ternary "_count" "_total" (eq $what "moved"))) }}{{ end }}
{{- end }}
- name: VLLM_TEST_{{ upper $what }}
  value: {{ join " " $samples | quote }}
{{- end }}
{{- end }}
