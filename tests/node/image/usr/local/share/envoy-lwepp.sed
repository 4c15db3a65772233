# Envoy's configuration for the picker of the Gateway API inference extension, which wants a request's body in one
# piece and knows nothing of the full-duplex streams that llm-d's own wants.
s/request_body_mode: .*/request_body_mode: STREAMED/
s/response_body_mode: .*/response_body_mode: NONE/
s/_trailer_mode: .*/_trailer_mode: SKIP/
s/^\( *\)failure_mode_allow: .*/&\n\1send_body_without_waiting_for_header_response: true/
s/^\( *\)- name: envoy.filters.http.ext_proc$/\1- name: envoy.filters.http.buffer\n\1  typed_config:\n\1    "@type": type.googleapis.com\/envoy.extensions.filters.http.buffer.v3.Buffer\n\1    max_request_bytes: 10485760\n&/
