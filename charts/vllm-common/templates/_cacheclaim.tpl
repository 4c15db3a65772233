{{/*
vllm-common.cacheClaim: the claim behind a cache of type pvc that the chart makes.
Parameters: the role context.
*/}}
{{- define "vllm-common.cacheClaim" -}}
{{- if and (eq .role.cache.type "pvc") (not .role.cache.existingClaim) (not (include "vllm-common.simulated" .)) -}}
{{- $keep := ternary (dict "helm.sh/resource-policy" "keep") dict .role.cache.keep -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "vllm-common.metadata" (merge (dict "objectName" (include "vllm-common.cacheClaimName" .) "annotations" $keep) .) | nindent 2 }}
spec:
  {{- include "vllm-common.cacheClaimSpec" . | nindent 2 }}
{{- end }}
{{- end }}
