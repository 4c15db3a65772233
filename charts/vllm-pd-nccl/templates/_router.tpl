{{/*
vllm-pd-nccl.routerAccount: account of the router's pods.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerAccount" -}}
{{- .root.Values.router.serviceAccount.name | default (include "vllm-pd-nccl.routerName" .) -}}
{{- end }}

{{/*
vllm-pd-nccl.selector: labels of a role's pods as the router wants them, as a JSON list of key=value.
Parameters: root, component.
*/}}
{{- define "vllm-pd-nccl.selector" -}}
{{- $selector := list -}}
{{- range $key, $value := include "vllm-common.selectorLabels" (dict "root" .root "name" "vllm-pd-nccl" "component" .component) | fromYaml -}}
{{- $selector = append $selector (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- toJson $selector -}}
{{- end }}

{{/*
vllm-pd-nccl.routerArguments: the router's args as a JSON list. Every flag here exists in both of its front ends, the
binary of the image and the command of the Python package.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerArguments" -}}
{{- $router := .root.Values.router -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- $args := dict
  "host" "0.0.0.0"
  "port" 8000
  "vllm-pd-disaggregation" true
  "prefill-policy" $router.policies.prefill
  "decode-policy" $router.policies.decode
  "request-timeout-secs" $router.requestTimeoutSeconds
  "prometheus-host" "0.0.0.0"
  "prometheus-port" 29000
  "health-check-interval-secs" $router.healthCheck.intervalSeconds
  "health-check-timeout-secs" $router.healthCheck.timeoutSeconds
  "health-failure-threshold" $router.healthCheck.failureThreshold
  "health-success-threshold" 1 -}}
{{- if eq $kv.connector "p2pNccl" -}}
{{- $_ := set $args "vllm-discovery-address" (printf "0.0.0.0:%d" (int64 $kv.p2pNccl.registrationPort)) -}}
{{- else -}}
{{- $_ := set $args "kv-connector" (ternary "mooncake" "nixl" (eq $kv.connector "mooncake")) -}}
{{- $_ := set $args "service-discovery" true -}}
{{- $_ := set $args "service-discovery-namespace" .root.Release.Namespace -}}
{{- $_ := set $args "service-discovery-port" .root.Values.prefill.port -}}
{{- range $component := list "prefill" "decode" -}}
{{- $_ := set $args (printf "%s-selector" $component) (include "vllm-pd-nccl.selector" (dict "root" $.root "component" $component) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- if eq (int64 $router.retries.max) 0 -}}
{{- $_ := set $args "disable-retries" true -}}
{{- else -}}
{{- $_ := set $args "retry-max-retries" $router.retries.max -}}
{{- $_ := set $args "retry-initial-backoff-ms" $router.retries.initialBackoffMs -}}
{{- $_ := set $args "retry-max-backoff-ms" $router.retries.maxBackoffMs -}}
{{- end -}}
{{- if $router.circuitBreaker.enabled -}}
{{- $_ := set $args "cb-failure-threshold" $router.circuitBreaker.failureThreshold -}}
{{- $_ := set $args "cb-timeout-duration-secs" $router.circuitBreaker.timeoutSeconds -}}
{{- else -}}
{{- $_ := set $args "disable-circuit-breaker" true -}}
{{- end -}}
{{- $args = mergeOverwrite $args (deepCopy $router.args) -}}
{{- include "vllm-common.flags" (dict "args" $args "lists" (keys $args) "switches" (keys $args) "repeated" list) -}}
{{- end }}

{{/*
vllm-pd-nccl.routerEnvironment: the router's env. The router replaces a client's key by its own, the engines' one.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerEnvironment" -}}
{{- $secret := .root.Values.global.vllm.auth.apiKeySecret -}}
{{- $env := dict -}}
{{- if $secret.name }}{{ $_ := set $env "OPENAI_API_KEY" (dict "valueFrom" (dict "secretKeyRef" (dict "name" $secret.name "key" $secret.key))) }}{{ end -}}
{{- include "vllm-common.env" (mergeOverwrite $env (deepCopy .root.Values.router.env)) -}}
{{- end }}

{{/*
vllm-pd-nccl.routerPod: the router's pod template.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerPod" -}}
{{- $router := .root.Values.router -}}
{{- $context := dict "root" .root "name" "vllm-pd-nccl" "component" "router" "role" $router "extra" $router.labels -}}
metadata:
  labels:
    {{- include "vllm-common.podLabels" $context | nindent 4 }}
  {{- with merge dict (deepCopy $router.annotations) (deepCopy .root.Values.global.vllm.annotations) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  enableServiceLinks: false
  serviceAccountName: {{ include "vllm-pd-nccl.routerAccount" . | quote }}
  terminationGracePeriodSeconds: {{ add $router.drainSeconds $router.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    {{- if not .root.Values.global.vllm.security.assignedUid }}
    runAsUser: 65532
    runAsGroup: 65532
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  {{- with include "vllm-common.pullSecrets" . }}{{ . | indent 2 }}{{ end }}
  {{- with include "vllm-common.scheduling" $context | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: router
      image: {{ include "vllm-pd-nccl.routerImage" . }}
      imagePullPolicy: {{ $router.image.pullPolicy }}
      command: [vllm-router]
      args:
        {{- include "vllm-pd-nccl.routerArguments" . | fromJsonArray | toYaml | nindent 8 }}
      {{- with include "vllm-pd-nccl.routerEnvironment" . }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8000
        - name: metrics
          containerPort: 29000
        {{- if eq .root.Values.global.vllm.kvTransfer.connector "p2pNccl" }}
        - name: registration
          containerPort: {{ int64 .root.Values.global.vllm.kvTransfer.p2pNccl.registrationPort }}
        {{- end }}
      {{- /* /health answers 200 while the router knows no engine; /readiness wants one of each role. */}}
      readinessProbe:
        httpGet: {path: /readiness, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe:
        httpGet: {path: /liveness, port: http}
        periodSeconds: 10
        timeoutSeconds: 10
        failureThreshold: 6
      {{- if gt (int64 $router.drainSeconds) 0 }}
      lifecycle:
        preStop:
          exec:
            command: [sleep, {{ int64 $router.drainSeconds | quote }}]
      {{- end }}
      resources:
        {{- include "vllm-pd-nccl.routerResources" . | nindent 8 }}
      securityContext:
        {{- include "vllm-common.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        - name: scratch
          mountPath: /tmp
  volumes:
    - name: scratch
      emptyDir: {}
{{- end }}

{{/*
vllm-pd-nccl.routerImage: reference of the router image. The digest wins over the tag.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerImage" -}}
{{- $image := .root.Values.router.image -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag }}{{ end -}}
{{- end }}

{{/*
vllm-pd-nccl.routerResources: the router's resources, without what is left empty.
Parameters: root.
*/}}
{{- define "vllm-pd-nccl.routerResources" -}}
{{- $resources := dict -}}
{{- range $kind := list "requests" "limits" -}}
{{- $amounts := dict -}}
{{- range $name, $quantity := index $.root.Values.router.resources $kind }}{{ if $quantity }}{{ $_ := set $amounts $name $quantity }}{{ end }}{{ end -}}
{{- if $amounts }}{{ $_ := set $resources $kind $amounts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}
