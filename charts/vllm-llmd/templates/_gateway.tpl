{{/*
Defines about a Gateway in the proxy's place. Each takes `root`, a top context of the release, and `values`, the values
of this chart, which the umbrella has under another key.

vllm-llmd.gatewayClass: GatewayClass.
*/}}
{{- define "vllm-llmd.gatewayClass" -}}
{{- $gateway := .values.proxy.gateway -}}
{{- $known := index (include "vllm-llmd.facts" . | fromJson).gateways $gateway.implementation | default dict -}}
{{- $gateway.className | default $known.class -}}
{{- end }}

{{/*
vllm-llmd.gatewayName: name of the Gateway that the chart makes. Its Service may be called by it and the class
together, which must not be longer than 63 characters.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gatewayName" -}}
{{- $name := include "vllm-common.fullname" (dict "root" .root "component" "gateway") -}}
{{- $room := sub 62 (include "vllm-llmd.gatewayClass" . | len) | int -}}
{{- if le (len $name) $room -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" ($name | trunc (int (sub $room 9)) | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- end }}

{{/*
vllm-llmd.gateways: the Gateways that lead here, as a JSON list of name and namespace, each once.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gateways" -}}
{{- $gateways := list -}}
{{- if .values.proxy.gateway.create -}}
{{- $gateways = list (dict "name" (include "vllm-llmd.gatewayName" .) "namespace" .root.Release.Namespace) -}}
{{- end -}}
{{- range .values.proxy.gateway.parentRefs -}}
{{- $gateways = append $gateways (dict "name" .name "namespace" (.namespace | default $.root.Release.Namespace)) -}}
{{- end -}}
{{- $gateways | uniq | toJson -}}
{{- end }}

{{/*
vllm-llmd.gatewayPeers: the Gateways' pods, as peers of a NetworkPolicy.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gatewayPeers" -}}
{{- $facts := (include "vllm-llmd.facts" . | fromJson).gateways -}}
{{- $peers := .values.proxy.gateway.pods -}}
{{- if not $peers -}}
{{- range include "vllm-llmd.gateways" . | fromJsonArray -}}
{{- $peer := dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" .namespace)) -}}
{{- if hasKey $facts $.values.proxy.gateway.implementation }}{{ $_ := set $peer "podSelector" (dict "matchLabels" (dict $facts.label .name)) }}{{ end -}}
{{- $peers = append $peers $peer -}}
{{- end -}}
{{- end -}}
{{- $peers | uniq | toYaml -}}
{{- end }}

{{/*
vllm-llmd.listeners: listeners of the Gateway that the chart makes, as a JSON list.
Parameters: values.
*/}}
{{- define "vllm-llmd.listeners" -}}
{{- .values.proxy.gateway.listeners | default (list (dict "name" "http" "port" 80)) | toJson -}}
{{- end }}

{{/*
vllm-llmd.gatewayListener: the listener to which pods inside the cluster speak, as JSON: port, and tlsSecretName where
it speaks TLS. Of a Gateway of the chart it is the first without TLS, else the first.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gatewayListener" -}}
{{- $gateway := .values.proxy.gateway -}}
{{- $found := dict "port" $gateway.port -}}
{{- if $gateway.create -}}
{{- $listeners := include "vllm-llmd.listeners" . | fromJsonArray -}}
{{- $found = first $listeners -}}
{{- range reverse $listeners }}{{ if not .tlsSecretName }}{{ $found = . }}{{ end }}{{ end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/*
vllm-llmd.gatewayAddress: host at which pods reach the first Gateway.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gatewayAddress" -}}
{{- $gateway := .values.proxy.gateway -}}
{{- $known := index (include "vllm-llmd.facts" . | fromJson).gateways $gateway.implementation | default dict -}}
{{- with include "vllm-llmd.gateways" . | fromJsonArray -}}
{{- $service := (first .).name -}}
{{- if $known.class_in_service }}{{ $service = printf "%s-%s" $service (include "vllm-llmd.gatewayClass" $) }}{{ end -}}
{{- $gateway.address | default (printf "%s.%s.svc" $service (first .).namespace) -}}
{{- end -}}
{{- end }}

{{/*
vllm-llmd.gatewayRequest: what a request needs for the route to take it, as JSON: https; host, where the route has
hostnames; headers; prefix of the path. A pattern cannot be met by guessing and is left out.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.gatewayRequest" -}}
{{- $route := .values.proxy.gateway.route -}}
{{- $listener := include "vllm-llmd.gatewayListener" . | fromJson -}}
{{- $headers := dict -}}
{{- range $route.headers }}{{ if ne (.type | default "Exact") "RegularExpression" }}{{ $_ := set $headers .name .value }}{{ end }}{{ end -}}
{{- $host := first (append $route.hostnames ($listener.hostname | default "")) | replace "*" "test" -}}
{{- dict "https" (hasKey $listener "tlsSecretName") "host" $host "headers" $headers "prefix" $route.prefix | toJson -}}
{{- end }}

{{/*
vllm-llmd.door: where requests enter, as JSON: service (its name or a host), port, and request, what one needs.
Parameters: root, values.
*/}}
{{- define "vllm-llmd.door" -}}
{{- if eq .values.proxy.type "gateway" -}}
{{- $listener := include "vllm-llmd.gatewayListener" . | fromJson -}}
{{- dict "service" (include "vllm-llmd.gatewayAddress" .) "port" $listener.port "request" (include "vllm-llmd.gatewayRequest" . | fromJson) | toJson -}}
{{- else -}}
{{- dict "service" (include "vllm-llmd.proxyName" .) "port" .values.service.port | toJson -}}
{{- end -}}
{{- end }}

{{/*
vllm-llmd.removal: Envoy's HTTP filter that takes the picker's headers from clients' requests.
Parameters: none.
*/}}
{{- define "vllm-llmd.removal" -}}
name: envoy.filters.http.header_mutation
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
  mutations:
    request_mutations:
      {{- range (include "vllm-llmd.facts" . | fromJson).picker_headers }}
      - remove: {{ . }}
      {{- end }}
{{- end }}

{{/*
vllm-llmd.proxyPeers: the pods through which requests come, as peers of a NetworkPolicy.
Parameters: root.
*/}}
{{- define "vllm-llmd.proxyPeers" -}}
{{- if eq .root.Values.proxy.type "gateway" -}}
{{- include "vllm-llmd.gatewayPeers" (dict "root" .root "values" .root.Values) -}}
{{- else -}}
{{- include "vllm-llmd.peers" (dict "root" .root "components" (list "proxy")) | trim -}}
{{- end -}}
{{- end }}
