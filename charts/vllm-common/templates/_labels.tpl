{{/*
vllm-common.selectorLabels: what selects a role's pods that take requests. Nothing else may ever enter: selectors cannot
change.
Parameters: root, name, component; optional member, of pods that take none.
*/}}
{{- define "vllm-common.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .member | default .component }}
{{- end }}

{{/*
vllm-common.podLabels: labels of a pod. Nothing here follows the chart's version, so a chart release alone never
restarts an engine. Ours win over the user's.
Parameters: root, name, component; optional `extra`, a map of further user labels, and `own`, one of further labels
of the chart.
*/}}
{{- define "vllm-common.podLabels" -}}
{{- $own := merge (include "vllm-common.selectorLabels" . | fromYaml) (.own | default dict) -}}
{{- $_ := set $own "app.kubernetes.io/version" (.root.Values.global.vllm.version | replace "+" "_") -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "vllm-phases" -}}
{{- $theirs := merge (deepCopy (.extra | default dict)) .root.Values.global.vllm.labels -}}
{{- merge $own (omit $theirs "app.kubernetes.io/managed-by" "helm.sh/chart") | toYaml -}}
{{- end }}

{{/*
vllm-common.labels: labels of an object: a pod's, who manages it, and the chart's version.
Parameters: as for vllm-common.podLabels.
*/}}
{{- define "vllm-common.labels" -}}
{{ include "vllm-common.podLabels" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
vllm-common.metadata: name, namespace, labels and annotations of an object.
Parameters: root, name, component; optional `annotations`, a map, and `objectName`.
*/}}
{{- define "vllm-common.metadata" -}}
name: {{ .objectName | default (include "vllm-common.fullname" .) }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "vllm-common.labels" . | nindent 2 }}
{{- with merge dict (deepCopy (.annotations | default dict)) (deepCopy .root.Values.global.vllm.annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
