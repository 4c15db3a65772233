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
vllm-common.scaledObject: KEDA's ScaledObject on the same metric, asked of Prometheus. The query sums over the
role's pods; KEDA divides by the target to get their number.
Parameters: the role context.
*/}}
{{- define "vllm-common.scaledObject" -}}
{{- $scaling := .role.autoscaling -}}
{{- if eq $scaling.type "keda" -}}
{{- $metric := (index (include "vllm-common.facts" . | fromJson).metrics $scaling.metric).name -}}
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
        query: sum({{ $metric }}{namespace="{{ .root.Release.Namespace }}",pod=~"{{ $name }}-[a-z0-9]+-[a-z0-9]+"})
        threshold: {{ include "vllm-common.scalar" $scaling.target | quote }}
      {{- with $scaling.keda.authentication }}
      authenticationRef:
        name: {{ . }}
      {{- end }}
{{- end }}
{{- end }}
