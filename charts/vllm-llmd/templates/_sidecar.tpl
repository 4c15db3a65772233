{{/*
vllm-llmd.sidecarConnector: the sidecar's protocol for the connector of the engines; nothing where it has none.
Parameters: root.
*/}}
{{- define "vllm-llmd.sidecarConnector" -}}
{{- $class := include "vllm-common.connectorClass" . -}}
{{- $found := "" -}}
{{- range $name, $connector := (include "vllm-llmd.facts" . | fromJson).sidecar_connectors -}}
{{- if and (not $found) (has $class $connector.engines) (include "vllm-llmd.within" (dict "root" $.root "window" $connector)) }}{{ $found = $name }}{{ end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/*
vllm-llmd.sidecarPorts: where the sidecar listens, as a JSON list of name and number: a port for each server of the
engine behind it.
Parameters: root.
*/}}
{{- define "vllm-llmd.sidecarPorts" -}}
{{- $servers := include "vllm-common.servers" (dict "role" .root.Values.decode) -}}
{{- include "vllm-common.portRange" (dict "name" "sidecar" "first" .root.Values.prefill.port "count" $servers) -}}
{{- end }}

{{/*
vllm-llmd.sidecarArguments: the sidecar's args as a JSON list. Its TLS is on by default, with a certificate that it
makes for itself and that nobody trusts. It calls engines by address, which a certificate cannot name, and knows no CA.
Parameters: root.
*/}}
{{- define "vllm-llmd.sidecarArguments" -}}
{{- $values := .root.Values -}}
{{- $kv := $values.global.vllm.kvTransfer -}}
{{- $sidecar := $values.routingSidecar -}}
{{- $knows := dict -}}
{{- range $option := list "model-server-port" "mooncake-bootstrap-port" "prefill-max-retries" -}}
{{- $_ := set $knows $option (include "vllm-llmd.knows" (dict "root" $.root "program" "sidecar" "option" $option)) -}}
{{- end -}}
{{- $servers := include "vllm-llmd.sidecarPorts" . | fromJsonArray | len -}}
{{- $tls := ne $values.global.vllm.tls.secretName "" -}}
{{- $args := dict "port" $values.prefill.port "kv-connector" (include "vllm-llmd.sidecarConnector" .) "secure-proxy" $tls -}}
{{- if $tls -}}
{{- $_ := set $args "cert-path" "/tls" -}}
{{- range $option := list "enable-tls" "tls-insecure-skip-verify" }}{{ $_ := set $args $option "prefiller,decoder" }}{{ end -}}
{{- end -}}
{{- $_ := set $args (ternary "model-server-port" "vllm-port" (ne (index $knows "model-server-port") "")) $values.decode.port -}}
{{- if and (eq $kv.connector "mooncake") (index $knows "mooncake-bootstrap-port") }}{{ $_ := set $args "mooncake-bootstrap-port" (include "vllm-common.bootstrapPort" (dict "root" .root "port" $values.prefill.port)) }}{{ end -}}
{{- if and (gt (int64 $sidecar.prefillRetries) 0) (index $knows "prefill-max-retries") }}{{ $_ := set $args "prefill-max-retries" $sidecar.prefillRetries }}{{ end -}}
{{- if gt $servers 1 }}{{ $_ := set $args "data-parallel-size" $servers }}{{ end -}}
{{- if $sidecar.ssrfProtection -}}
{{- $_ := set $args "enable-ssrf-protection" "true" -}}
{{- $_ := set $args "inference-pool" (printf "%s/%s" .root.Release.Namespace (include "vllm-llmd.poolName" .)) -}}
{{- end -}}
{{- include "vllm-llmd.flags" (mergeOverwrite $args (deepCopy $sidecar.args)) -}}
{{- end }}

{{/*
vllm-llmd.flags: a map of flags of one of llm-d's programs, as a JSON list. They know no --no- form.
Parameters: the map.
*/}}
{{- define "vllm-llmd.flags" -}}
{{- $args := dict -}}
{{- range $flag, $value := . }}{{ $_ := set $args $flag (ternary (toString $value) $value (kindIs "bool" $value)) }}{{ end -}}
{{- include "vllm-common.flags" (dict "args" $args "lists" list "switches" list "repeated" (keys $args)) -}}
{{- end }}

{{/*
vllm-llmd.sidecar: the routing sidecar, which has prefill compute the KV before its own engine answers. As a sidecar
in Kubernetes' sense it ends after the engine, so streams in flight come to their end. Its own health says nothing
of the engine, hence no probe.
Parameters: root.
*/}}
{{- define "vllm-llmd.sidecar" -}}
{{- $sidecar := .root.Values.routingSidecar -}}
name: routing-sidecar
image: {{ include "vllm-llmd.image" (dict "root" .root "program" "sidecar" "image" $sidecar.image) }}
imagePullPolicy: {{ $sidecar.image.pullPolicy }}
restartPolicy: Always
command: [/app/pd-sidecar]
args:
  {{- include "vllm-llmd.sidecarArguments" . | fromJsonArray | toYaml | nindent 2 }}
{{- with include "vllm-common.env" $sidecar.env }}
env:
  {{- . | nindent 2 }}
{{- end }}
ports:
  {{- range include "vllm-llmd.sidecarPorts" . | fromJsonArray }}
  - name: {{ .name }}
    containerPort: {{ int64 .number }}
  {{- end }}
{{- with include "vllm-common.tlsMount" . }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
resources:
  {{- include "vllm-llmd.resources" $sidecar.resources | nindent 2 }}
securityContext:
  {{- include "vllm-common.containerSecurityContext" . | nindent 2 }}
  {{- if not .root.Values.global.vllm.security.assignedUid }}
  runAsUser: 65532
  runAsGroup: 65532
  {{- end }}
{{- end }}
