{{/*
vllm-llmd.pickerName: name of the picker's objects.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerName" -}}
{{- include "vllm-common.fullname" (dict "root" .root "component" "picker") -}}
{{- end }}

{{/*
vllm-llmd.pickerAccount: account of the picker's pods.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerAccount" -}}
{{- .root.Values.endpointPicker.serviceAccount.name | default (include "vllm-llmd.pickerName" .) -}}
{{- end }}

{{/*
vllm-llmd.clusterName: name of the picker's objects that belong to no namespace, another for each namespace.
Parameters: root.
*/}}
{{- define "vllm-llmd.clusterName" -}}
{{- include "vllm-llmd.uniqueName" (dict "root" .root "component" "picker" "for" .root.Release.Namespace) -}}
{{- end }}

{{/*
vllm-llmd.uniqueName: name of an object outside the release's namespace, where other releases have theirs.
Parameters: root, component; for, a text that is another for each object that must not meet.
*/}}
{{- define "vllm-llmd.uniqueName" -}}
{{- $name := include "vllm-common.fullname" . -}}
{{- printf "%s-%s" ($name | trunc 54 | trimSuffix "-") (printf "%s/%s" .for $name | sha256sum | trunc 8) -}}
{{- end }}

{{/*
vllm-llmd.pickerMetadata: metadata of an object of the picker.
Parameters: root; optional objectName, annotations and extra, as for vllm-common.metadata.
*/}}
{{- define "vllm-llmd.pickerMetadata" -}}
{{- include "vllm-common.metadata" (merge (dict "name" "vllm-llmd" "component" "picker") .) -}}
{{- end }}

{{/*
vllm-llmd.pickerSelector: labels of the picker's pods.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerSelector" -}}
{{- include "vllm-common.selectorLabels" (dict "root" .root "name" "vllm-llmd" "component" "picker") -}}
{{- end }}

{{/*
vllm-llmd.pickerArguments: the picker's args as a JSON list. Without an InferencePool it selects the engines' pods
itself. Of several pickers one leads, since each would know only the requests that it placed.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerArguments" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $args := dict
  "config-file" "/config/picker.yaml"
  "grpc-port" 9002
  "grpc-health-port" 9003
  "metrics-port" 9090
  "secure-serving" (or (eq .root.Values.proxy.type "gateway") (ne .root.Values.global.vllm.tls.secretName ""))
  "health-checking" true
  "metrics-endpoint-auth" $picker.metricsAuthentication
  "refresh-metrics-interval" (printf "%dms" (int64 $picker.refreshMilliseconds))
  "ha-enable-leader-election" (gt (int64 $picker.replicas) 1)
  "tracing" false
  "pool-namespace" .root.Release.Namespace -}}
{{- if .root.Values.global.vllm.tls.secretName }}{{ $args = merge $args (dict "cert-path" "/tls" "enable-cert-reload" true) }}{{ end -}}
{{- if .root.Values.inferencePool.enabled -}}
{{- $_ := set $args "pool-name" (include "vllm-llmd.poolName" .) -}}
{{- else -}}
{{- $selector := list -}}
{{- range $key, $value := include "vllm-llmd.poolSelector" . | fromYaml }}{{ $selector = append $selector (printf "%s=%s" $key $value) }}{{ end -}}
{{- $_ := set $args "endpoint-selector" (join "," $selector) -}}
{{- $_ := set $args "endpoint-target-ports" (include "vllm-llmd.targetPorts" . | fromJsonArray | toStrings | join ",") -}}
{{- end -}}
{{- if include "vllm-llmd.knows" (dict "root" .root "program" "picker" "option" "drain-timeout") }}{{ $_ := set $args "drain-timeout" (printf "%ds" (int64 $picker.drainSeconds)) }}{{ end -}}
{{- include "vllm-llmd.flags" (mergeOverwrite $args (deepCopy $picker.args)) -}}
{{- end }}

{{/*
vllm-llmd.pickerPod: the picker's pod template. It reads its configuration only when it starts, hence the checksum.
Several pickers: only the leader answers the readiness check, so the Service leads to it alone.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerPod" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $context := dict "root" .root "name" "vllm-llmd" "component" "picker" "role" $picker "extra" $picker.labels -}}
{{- $checksum := dict "checksum/config" (include "vllm-llmd.pickerConfig" . | sha256sum) -}}
{{- $several := gt (int64 $picker.replicas) 1 -}}
metadata:
  labels:
    {{- include "vllm-common.podLabels" $context | nindent 4 }}
  annotations:
    {{- merge $checksum (deepCopy $picker.annotations) (deepCopy .root.Values.global.vllm.annotations) | toYaml | nindent 4 }}
spec:
  enableServiceLinks: false
  serviceAccountName: {{ include "vllm-llmd.pickerAccount" . | quote }}
  terminationGracePeriodSeconds: {{ add $picker.drainSeconds $picker.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "vllm-llmd.plainPodSecurityContext" . | nindent 4 }}
  {{- with include "vllm-common.pullSecrets" . }}{{ . | indent 2 }}{{ end }}
  {{- with include "vllm-common.scheduling" $context | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: picker
      image: {{ include "vllm-llmd.image" (dict "root" .root "program" "picker" "image" $picker.image) }}
      imagePullPolicy: {{ $picker.image.pullPolicy }}
      command: [/app/epp]
      args:
        {{- include "vllm-llmd.pickerArguments" . | fromJsonArray | toYaml | nindent 8 }}
      env:
        {{- /* Its own Deployment's name is read from the first. */}}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        {{- with include "vllm-common.env" $picker.env }}
        {{- . | nindent 8 }}
        {{- end }}
      ports:
        - name: grpc
          containerPort: 9002
        - name: grpc-health
          containerPort: 9003
        - name: metrics
          containerPort: 9090
      readinessProbe:
        grpc: {port: 9003, service: {{ ternary "readiness" "inference-extension" $several }}}
        periodSeconds: 2
        timeoutSeconds: 5
      livenessProbe:
        {{- /* Draining it says NOT_SERVING here too, so this must outlast the drain. */}}
        grpc: {port: 9003, service: {{ ternary "liveness" "inference-extension" $several }}}
        initialDelaySeconds: 5
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: {{ div (add $picker.drainSeconds $picker.terminationGracePeriodSeconds 10) 10 | max 6 }}
      resources:
        {{- include "vllm-llmd.resources" $picker.resources | nindent 8 }}
      securityContext:
        {{- include "vllm-common.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /config
          readOnly: true
        - name: scratch
          mountPath: /tmp
        {{- with include "vllm-common.tlsMount" . }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "vllm-llmd.pickerName" . }}
    - name: scratch
      emptyDir: {}
    {{- with include "vllm-common.tlsVolume" . }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}
