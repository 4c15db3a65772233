{{/*
vllm-llmd.proxyName: name of the proxy's objects.
Parameters: root.
*/}}
{{- define "vllm-llmd.proxyName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "proxy") -}}
{{- end }}

{{/*
vllm-llmd.proxyMetadata: metadata of an object of the proxy.
Parameters: root; optional annotations and extra, as for vllm-common.metadata.
*/}}
{{- define "vllm-llmd.proxyMetadata" -}}
{{- include "vllm-common.metadata" (merge (dict "name" "vllm-llmd" "component" "proxy") .) -}}
{{- end }}

{{/*
vllm-llmd.proxySelector: labels of the proxy's pods.
Parameters: root.
*/}}
{{- define "vllm-llmd.proxySelector" -}}
{{- include "vllm-common.selectorLabels" (dict "root" .root "name" "vllm-llmd" "component" "proxy") -}}
{{- end }}

{{/*
vllm-llmd.proxyPod: the proxy's pod template.
Parameters: root.
*/}}
{{- define "vllm-llmd.proxyPod" -}}
{{- $proxy := .root.Values.proxy -}}
{{- $context := dict "root" .root "name" "vllm-llmd" "component" "proxy" "role" $proxy "extra" $proxy.labels -}}
{{- $checksum := dict "checksum/config" (include "vllm-llmd.envoy" . | sha256sum) -}}
metadata:
  labels:
    {{- include "vllm-common.podLabels" $context | nindent 4 }}
  annotations:
    {{- merge $checksum (deepCopy $proxy.annotations) (deepCopy .root.Values.global.vllm.annotations) | toYaml | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add $proxy.drain.preStopSeconds $proxy.drain.timeoutSeconds 15 }}
  securityContext:
    {{- include "vllm-llmd.plainPodSecurityContext" . | nindent 4 }}
  {{- with include "vllm-common.pullSecrets" . }}{{ . | indent 2 }}{{ end }}
  {{- with include "vllm-common.scheduling" $context | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: envoy
      image: {{ $proxy.image.repository }}{{ if $proxy.image.digest }}@{{ $proxy.image.digest }}{{ else }}:{{ $proxy.image.tag }}{{ end }}
      imagePullPolicy: {{ $proxy.image.pullPolicy }}
      command: [envoy]
      args: [--config-path, /etc/envoy/envoy.yaml, --concurrency, {{ int64 $proxy.threads | quote }}, --log-level, {{ $proxy.logLevel }}]
      ports:
        - name: http
          containerPort: 8081
        - name: health
          containerPort: 19001
      readinessProbe:
        httpGet: {path: /ready, port: health}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 3
      livenessProbe:
        httpGet: {path: /live, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      lifecycle:
        preStop:
          exec:
            command: [bash, /etc/envoy/drain.sh, {{ int64 $proxy.drain.preStopSeconds | quote }}, {{ int64 $proxy.drain.timeoutSeconds | quote }}]
      resources:
        {{- include "vllm-llmd.resources" $proxy.resources | nindent 8 }}
      securityContext:
        {{- include "vllm-common.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/envoy
          readOnly: true
        - name: scratch
          mountPath: /tmp
        {{- with include "vllm-common.tlsMount" . }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "vllm-llmd.proxyName" . }}
    - name: scratch
      emptyDir: {}
    {{- with include "vllm-common.tlsVolume" . }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}
