{{/*
vllm-common.scheduling: where the pod runs. A spread constraint without a selector gets the role's own.
Parameters: the role context.
*/}}
{{- define "vllm-common.scheduling" -}}
{{- $scheduling := mergeOverwrite (dict "nodeSelector" (include "vllm-common.sharingNodes" . | fromJson)) (deepCopy .role.scheduling) -}}
{{- if has (include "vllm-common.hamiPlaces" .) (list "slice" "card") }}{{ $_ := set $scheduling "schedulerName" (include "vllm-common.hamiScheduler" .) }}{{ end -}}
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
