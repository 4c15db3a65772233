{{/*
Every define of this library that speaks of a role takes one dict, the role context:
  root       the chart's top context ($)
  name       the chart that owns the role, for app.kubernetes.io/name (an alias would change .Chart.Name)
  component  the role: server, prefill, decode
  role       the role's values, a block as in schemas/role.yaml
A layer may add what its engines need beside the role's values:
  own        labels of its pods that take requests
  ownAnnotations  annotations of those pods
  serverPorts  how many ports of data-parallel ranks in one pod it can send requests to; 1 when absent
  env        variables, a map of name to value
  flags      flags, a map of flag to value; `owners` says which values path renders each
  ports      ports beside HTTP, a map of name to number
  queries    metrics that the layer itself asks Prometheus for, a map of metric to query
  sidecars   containers that run beside the engine from before its start until after its end
  token      "true" when one of them speaks to the Kubernetes API, so that the pods get their account's token
Use: (dict "root" . "name" "vllm-base" "component" "server" "role" .Values)
*/}}

{{/*
vllm-common.fullname: name of a role's objects, at most 63 characters. A name that is too long is cut and
gets a hash of the whole, so two long names stay different.
Parameters: root, component.
*/}}
{{- define "vllm-common.fullname" -}}
{{- $base := .root.Values.global.vllm.nameOverride | default .root.Release.Name -}}
{{- $full := printf "%s-%s" $base .component -}}
{{- if le (len $full) 63 -}}
{{- $full -}}
{{- else -}}
{{- printf "%s-%s" ($full | trunc 54 | trimSuffix "-") ($full | sha256sum | trunc 8) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.valuesPath: the path at which the user sets a chart's values, for messages: `base.` in the
umbrella, nothing where the chart is installed alone.
Parameters: root.
*/}}
{{- define "vllm-common.valuesPath" -}}
{{- if not .root.Chart.IsRoot }}{{ .root.Chart.Name }}.{{ end -}}
{{- end }}

{{/*
vllm-common.serviceAccountName: account of the role's pods.
Parameters: the role context.
*/}}
{{- define "vllm-common.serviceAccountName" -}}
{{- $account := .role.serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (include "vllm-common.fullname" .) -}}
{{- else -}}
{{- $account.name | default "default" -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.cacheClaimName: name of the claim behind a cache of type pvc.
Parameters: the role context.
*/}}
{{- define "vllm-common.cacheClaimName" -}}
{{- .role.cache.existingClaim | default (printf "%s-cache" (include "vllm-common.fullname" .) | trunc 63 | trimSuffix "-") -}}
{{- end }}
