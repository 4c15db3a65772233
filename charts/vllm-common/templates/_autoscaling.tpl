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
    {{- include "vllm-common.workload" . | nindent 4 }}
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
{{- $target := include "vllm-common.workload" . | fromYaml -}}
{{- include "vllm-common.podSum" (dict "root" .root "metric" $metric "kind" $target.kind "name" $target.name) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.podSum: a metric summed over the pods of a workload, as a query of Prometheus. A Deployment's pod has the
name of its ReplicaSet, whose own part has 10 letters at most, cut to 58, and 5 more; one of a group has numbers.
Parameters: root; metric; kind and name of the workload.
*/}}
{{- define "vllm-common.podSum" -}}
{{- $pods := printf "%s-[a-z0-9]+-[a-z0-9]+" .name -}}
{{- if eq .kind "LeaderWorkerSet" -}}
{{- $pods = printf "%s-[0-9]+(-[0-9]+)?" .name -}}
{{- else if gt (len .name) 46 -}}
{{- $pods = printf "%s[-a-z0-9]+" (trunc 58 .name) -}}
{{- end -}}
sum({{ .metric }}{namespace="{{ .root.Release.Namespace }}",pod=~"{{ $pods }}"})
{{- end }}

{{/*
vllm-common.scaledObject: KEDA's ScaledObject on the same metric, asked of Prometheus. KEDA divides what it gets by
the target to get the number of replicas.
Parameters: the role context.
*/}}
{{- define "vllm-common.scaledObject" -}}
{{- $scaling := .role.autoscaling -}}
{{- if eq $scaling.type "keda" -}}
{{- $target := include "vllm-common.workload" . | fromYaml -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    {{- toYaml $target | nindent 4 }}
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
        serverAddress: {{ $scaling.keda.prometheusAddress | quote }}
        query: {{ include "vllm-common.scalingQuery" . }}
        threshold: {{ include "vllm-common.scalar" $scaling.target | quote }}
      {{- with $scaling.keda.authentication }}
      authenticationRef:
        name: {{ . | quote }}
      {{- end }}
{{- end }}
{{- end }}
