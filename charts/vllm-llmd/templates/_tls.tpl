{{/*
TLS of the proxy, from the client to the engines: one Secret for proxy, picker, sidecars and engines, on every hop.
*/}}

{{/*
vllm-llmd.envoyServesTls: the transport socket of a listener that has the certificate; nothing without TLS.
Parameters: root.
*/}}
{{- define "vllm-llmd.envoyServesTls" -}}
{{- if .root.Values.global.vllm.tls.secretName -}}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
    common_tls_context:
      alpn_protocols: [h2, http/1.1]
      tls_certificates:
        - certificate_chain: {filename: /tls/tls.crt}
          private_key: {filename: /tls/tls.key}
{{- end -}}
{{- end }}

{{/*
vllm-llmd.envoyCallsTls: the transport socket of a cluster whose servers have it; nothing without TLS. Which CA has
signed a certificate is checked, and not the name in it: pods are called by address.
Parameters: root; protocol, h2 or http/1.1.
*/}}
{{- define "vllm-llmd.envoyCallsTls" -}}
{{- $tls := .root.Values.global.vllm.tls -}}
{{- if $tls.secretName -}}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    common_tls_context:
      alpn_protocols: [{{ .protocol }}]
      {{- with $tls.caKey }}
      validation_context:
        trusted_ca: {filename: {{ printf "/tls/%s" . | quote }}}
      {{- end }}
{{- end -}}
{{- end }}
