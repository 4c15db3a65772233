{{/*
vllm-common.scheduling: where the pod runs. A spread constraint without a selector gets the role's own.
Parameters: the role context.
*/}}
{{- define "vllm-common.scheduling" -}}
{{- $scheduling := .role.scheduling -}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "schedulerName" }}
{{- with index $scheduling $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- $selector := dict "matchLabels" (include "vllm-common.selectorLabels" . | fromYaml) }}
{{- with $scheduling.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - {{ hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" $selector) | toJson }}
  {{- end }}
{{- end }}
{{- end }}
