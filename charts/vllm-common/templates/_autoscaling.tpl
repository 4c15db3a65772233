{{/*
vllm-common.horizontalPodAutoscaler: HPA on a vLLM metric, served by a metrics adapter.
Parameters: the role context.
*/}}
{{- define "vllm-common.horizontalPodAutoscaler" -}}
{{- $scaling := .role.autoscaling -}}
{{- if eq $scaling.type "hpa" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "vllm-common.fullname" . }}
  minReplicas: {{ int64 $scaling.minReplicas }}
  maxReplicas: {{ int64 $scaling.maxReplicas }}
  metrics:
    - type: Pods
      pods:
        metric:
          name: {{ $scaling.hpaMetricName | default (printf "vllm_%s" $scaling.metric) }}
        target:
          type: AverageValue
          averageValue: {{ include "vllm-common.scalar" $scaling.target | quote }}
  {{- with $scaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
vllm-common.scalingQuery: what Prometheus is asked for: the layer's own query, else the sum over the role's pods.
Parameters: the role context.
*/}}
{{- define "vllm-common.scalingQuery" -}}
{{- $scaling := .role.autoscaling -}}
{{- with index (.queries | default dict) $scaling.metric -}}
{{- . -}}
{{- else -}}
{{- $metric := (index (include "vllm-common.facts" . | fromJson).metrics $scaling.metric).name -}}
{{- include "vllm-common.podSum" (dict "root" .root "metric" $metric "deployment" (include "vllm-common.fullname" .)) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.podSum: a metric summed over the pods of a Deployment, as a query of Prometheus. A pod's name is that of
its ReplicaSet, whose own part has 10 letters at most, cut to 58, and 5 more.
Parameters: root; metric; deployment, its name.
*/}}
{{- define "vllm-common.podSum" -}}
{{- $pods := printf "%s-[a-z0-9]+-[a-z0-9]+" .deployment -}}
{{- if gt (len .deployment) 46 }}{{ $pods = printf "%s[-a-z0-9]+" (trunc 58 .deployment) }}{{ end -}}
sum({{ .metric }}{namespace="{{ .root.Release.Namespace }}",pod=~"{{ $pods }}"})
{{- end }}

{{/*
vllm-common.scaledObject: KEDA's ScaledObject on the same metric, asked of Prometheus. KEDA divides what it gets by
the target to get the number of pods.
Parameters: the role context.
*/}}
{{- define "vllm-common.scaledObject" -}}
{{- $scaling := .role.autoscaling -}}
{{- if eq $scaling.type "keda" -}}
{{- $name := include "vllm-common.fullname" . -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    name: {{ $name }}
  minReplicaCount: {{ int64 $scaling.minReplicas }}
  maxReplicaCount: {{ int64 $scaling.maxReplicas }}
  pollingInterval: {{ int64 $scaling.keda.pollingIntervalSeconds }}
  cooldownPeriod: {{ int64 $scaling.keda.cooldownSeconds }}
  {{- with $scaling.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- toYaml . | nindent 8 }}
  {{- end }}
  triggers:
    - type: prometheus
      metricType: AverageValue
      metadata:
        serverAddress: {{ $scaling.keda.prometheusAddress }}
        query: {{ include "vllm-common.scalingQuery" . }}
        threshold: {{ include "vllm-common.scalar" $scaling.target | quote }}
      {{- with $scaling.keda.authentication }}
      authenticationRef:
        name: {{ . }}
      {{- end }}
{{- end }}
{{- end }}
