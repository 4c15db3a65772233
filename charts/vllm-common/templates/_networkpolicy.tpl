{{/*
vllm-common.networkPolicy: the policy of a role. Only the HTTP port is reachable; the ports on which the processes
of one pod talk stay closed, but for engines that exchange KV.
Parameters: the role context; `clients`, a list of peers (empty: everybody); optional `engines`, peers that may reach
every port, because KV transfer chooses its ports freely, and `reach`, peers that the role itself must reach.
*/}}
{{- define "vllm-common.networkPolicy" -}}
{{- $policy := .root.Values.global.vllm.networkPolicy -}}
{{- if $policy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "vllm-common.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress{{ if eq $policy.egress "dns" }}, Egress{{ end }}]
  ingress:
    - ports:
        - port: http
          protocol: TCP
      {{- with .clients }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .engines }}
    - from:
        {{- toYaml . | nindent 8 }}
    {{- end }}
  {{- if eq $policy.egress "dns" }}
  egress:
    {{- with .reach }}
    - to:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    - ports:
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
    {{- with $policy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
