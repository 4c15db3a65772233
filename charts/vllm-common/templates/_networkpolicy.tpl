{{/*
vllm-common.networkPolicy: the policy of a role. Only the HTTP ports are reachable; those on which processes talk to
each other stay closed, but for the pods of one role whose replicas have several, and for engines that exchange KV.
Parameters: the role context; `clients`, a list of peers (empty: everybody); optional `engines`, peers that may reach
every port, because KV transfer chooses its ports freely; `ingress`, further rules; and `reach`, peers that the role
itself must reach.
*/}}
{{- define "vllm-common.networkPolicy" -}}
{{- $policy := .root.Values.global.vllm.networkPolicy -}}
{{- $engines := .engines | default list -}}
{{- $reach := .reach | default list -}}
{{- if and (gt (int64 .role.parallelism.nodes) 1) (not $engines) -}}
{{- $engines = list (dict "podSelector" (include "vllm-common.memberSelector" . | fromYaml)) -}}
{{- $reach = concat $reach $engines -}}
{{- end -}}
{{- if $policy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "vllm-common.metadata" . | nindent 2 }}
spec:
  podSelector:
    {{- include "vllm-common.memberSelector" . | nindent 4 }}
  policyTypes: [Ingress{{ if eq $policy.egress "dns" }}, Egress{{ end }}]
  ingress:
    - ports:
        {{- range include "vllm-common.httpPorts" . | fromJsonArray }}
        - port: {{ .name }}
          protocol: TCP
        {{- end }}
      {{- with .clients }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .ingress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $engines }}
    - from:
        {{- toYaml . | nindent 8 }}
    {{- end }}
  {{- if eq $policy.egress "dns" }}
  egress:
    {{- with $reach }}
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
