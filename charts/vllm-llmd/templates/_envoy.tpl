{{/*
vllm-llmd.envoy: Envoy's configuration, as YAML. Requests go to the picker (ext_proc), which names an engine in a
header, and Envoy sends them there (ORIGINAL_DST). A header of that kind that came from the client is taken away
first: Envoy and sidecar would obey it.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoy" -}}
admin:
  address:
    socket_address: {address: 127.0.0.1, port_value: 19000}
static_resources:
  listeners:
    - {{- include "vllm-llmd.envoyRequests" . | nindent 6 }}
    - {{- include "vllm-llmd.envoyHealth" . | nindent 6 }}
  clusters:
    - {{- include "vllm-llmd.envoyEngines" . | nindent 6 }}
    - {{- include "vllm-llmd.envoyPicker" . | nindent 6 }}
    {{- range $role := list "prefill" "decode" }}
    - name: {{ $role }}
      {{- include "vllm-llmd.envoyNames" . | nindent 6 }}
      load_assignment:
        cluster_name: {{ $role }}
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {address: {{ include "vllm-llmd.wholeName" (dict "root" $.root "component" (printf "llmd-%s" $role)) }}, port_value: {{ int64 (index $.root.Values $role).port }}}
    {{- end }}
    - name: admin
      type: STATIC
      load_assignment:
        cluster_name: admin
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {address: 127.0.0.1, port_value: 19000}
{{- end }}

{{/*
vllm-llmd.host: the name of a component's Service, as the pods of any namespace know it.
Parameters: root, component.
*/}}
{{- define "vllm-llmd.host" -}}
{{- include "vllm-common.fullname" . }}.{{ .root.Release.Namespace }}.svc
{{- end }}

{{/*
vllm-llmd.wholeName: the same name with all its domains and the dot that ends it. Envoy keeps the last addresses of a
name when it cannot be looked up. A shorter name is tried in other domains as well, where servers without a way out
fail; of a whole one they know that it has no address.
Parameters: root, component.
*/}}
{{- define "vllm-llmd.wholeName" -}}
{{- include "vllm-llmd.host" . }}.{{ .root.Values.global.vllm.clusterDomain }}.
{{- end }}

{{/*
vllm-llmd.envoyRequests: the listener for requests.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoyRequests" -}}
{{- $proxy := .root.Values.proxy -}}
name: requests
address:
  socket_address: {address: 0.0.0.0, port_value: 8081}
per_connection_buffer_limit_bytes: {{ int64 $proxy.connectionBufferBytes }}
filter_chains:
  - {{- with include "vllm-llmd.envoyServesTls" . }}{{ . | nindent 4 }}{{ end }}
    filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: requests
          stream_idle_timeout: {{ int64 $proxy.requestTimeoutSeconds }}s
          {{- if $proxy.accessLog }}
          access_log:
            - name: envoy.access_loggers.stdout
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                log_format:
                  json_format:
                    time: "%START_TIME%"
                    method: "%REQ(:METHOD)%"
                    path: "%REQ(:PATH)%"
                    code: "%RESPONSE_CODE%"
                    flags: "%RESPONSE_FLAGS%"
                    milliseconds: "%DURATION%"
                    client: "%DOWNSTREAM_REMOTE_ADDRESS%"
                    decode: "%REQ(X-GATEWAY-DESTINATION-ENDPOINT)%"
                    prefill: "%REQ(X-PREFILLER-HOST-PORT)%"
          {{- end }}
          http_filters:
            - {{- include "vllm-llmd.removal" . | nindent 14 }}
            - name: envoy.filters.http.ext_proc
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
                grpc_service:
                  envoy_grpc: {cluster_name: picker}
                  timeout: 10s
                processing_mode:
                  request_header_mode: SEND
                  response_header_mode: SEND
                  request_body_mode: FULL_DUPLEX_STREAMED
                  response_body_mode: FULL_DUPLEX_STREAMED
                  request_trailer_mode: SEND
                  response_trailer_mode: SEND
                message_timeout: {{ int64 $proxy.requestTimeoutSeconds }}s
                failure_mode_allow: false
            - name: envoy.filters.http.router
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          route_config:
            name: requests
            virtual_hosts:
              - name: all
                domains: ["*"]
                routes:
                  - match: {prefix: /}
                    route:
                      cluster: engines
                      timeout: {{ int64 $proxy.requestTimeoutSeconds }}s
                      idle_timeout: {{ int64 $proxy.requestTimeoutSeconds }}s
{{- end }}

{{/*
vllm-llmd.envoyHealth: the listener for probes and metrics. It is healthy while the picker answers and each role has a
ready engine; Envoy's own /ready is 200 without any of them. A prefill that may go away is not waited for: decode
answers alone meanwhile.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoyHealth" -}}
name: health
address:
  socket_address: {address: 0.0.0.0, port_value: 19001}
filter_chains:
  - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: health
          http_filters:
            - name: envoy.filters.http.health_check
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck
                pass_through_mode: false
                headers:
                  - name: ":path"
                    string_match: {exact: /ready}
                cluster_min_healthy_percentages:
                  {{- range $cluster := ternary (list "picker" "decode") (list "picker" "prefill" "decode") (ne (include "vllm-llmd.prefillMayGo" .) "") }}
                  {{ $cluster }}: {value: 1}
                  {{- end }}
            - name: envoy.filters.http.router
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          route_config:
            name: health
            virtual_hosts:
              - name: all
                domains: ["*"]
                routes:
                  - match: {path: /live}
                    direct_response: {status: 200}
                  - match: {path: /metrics}
                    route: {cluster: admin, prefix_rewrite: /stats/prometheus}
{{- end }}

{{/*
vllm-llmd.envoyNames: how a cluster finds its addresses: all of a name, looked up often, since pods come and go.
Parameters: none.
*/}}
{{- define "vllm-llmd.envoyNames" }}
cluster_type:
  name: envoy.clusters.dns
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster
    dns_refresh_rate: 2s
    all_addresses_in_single_endpoint: false
{{- end }}

{{/*
vllm-llmd.envoyEngines: the engine that the picker has named. Envoy's default limits of 1024 requests and connections
would cap a cluster of engines.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoyEngines" -}}
{{- $most := int64 .root.Values.proxy.maxRequests -}}
name: engines
type: ORIGINAL_DST
lb_policy: CLUSTER_PROVIDED
connect_timeout: 5s
{{- with include "vllm-llmd.envoyCallsTls" (dict "root" .root "protocol" "http/1.1") }}
{{ . }}
{{- end }}
circuit_breakers:
  thresholds:
    - {max_connections: {{ $most }}, max_pending_requests: {{ $most }}, max_requests: {{ $most }}}
original_dst_lb_config:
  use_http_header: true
  http_header_name: x-gateway-destination-endpoint
{{- end }}

{{/*
vllm-llmd.envoyPicker: the picker, asked for its health as well.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoyPicker" -}}
{{- $most := int64 .root.Values.proxy.maxRequests -}}
name: picker
connect_timeout: 5s
{{- include "vllm-llmd.envoyNames" . }}
{{- with include "vllm-llmd.envoyCallsTls" (dict "root" .root "protocol" "h2") }}
{{ . }}
{{- end }}
circuit_breakers:
  thresholds:
    - {max_connections: {{ $most }}, max_pending_requests: {{ $most }}, max_requests: {{ $most }}}
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config:
      http2_protocol_options: {}
health_checks:
  # A dead picker refuses at once; one on a busy node is slow, and to leave the front door would not help it.
  - timeout: 5s
    interval: 2s
    unhealthy_threshold: 2
    healthy_threshold: 1
    no_traffic_interval: 2s
    # A picker that must end says so at once; the next check must reach its successor, not the same connection.
    reuse_connection: false
    grpc_health_check: {service_name: envoy.service.ext_proc.v3.ExternalProcessor}
load_assignment:
  cluster_name: picker
  endpoints:
    - lb_endpoints:
        - endpoint:
            address:
              socket_address: {address: {{ include "vllm-llmd.wholeName" (dict "root" .root "component" "picker") }}, port_value: 9002}
{{- end }}
