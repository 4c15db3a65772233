{{/*
vllm-common.sidecarConnector: the sidecar's protocol for the connector of the engines; nothing where it has none.
Parameters: root.
*/}}
{{- define "vllm-common.sidecarConnector" -}}
{{- $class := include "vllm-common.connectorClass" . -}}
{{- $found := "" -}}
{{- range $name, $connector := (include "vllm-common.llmdFacts" . | fromJson).sidecar_connectors -}}
{{- if and (not $found) (has $class $connector.engines) (include "vllm-common.llmdWithin" (dict "root" $.root "window" $connector)) }}{{ $found = $name }}{{ end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/*
vllm-common.sidecarPorts: where the sidecar listens, as a JSON list of name and number: a port for each server of the
engine behind it.
Parameters: role, of the engine; poolPort, the first port of the pool.
*/}}
{{- define "vllm-common.sidecarPorts" -}}
{{- include "vllm-common.portRange" (dict "name" "sidecar" "first" .poolPort "count" (include "vllm-common.servers" .)) -}}
{{- end }}

{{/*
vllm-common.sidecarArguments: the sidecar's args as a JSON list. Its TLS is on by default, with a certificate that it
makes for itself and that nobody trusts. It calls engines by address, which a certificate cannot name, and knows no CA.
Parameters: root; role, of the engine; poolPort, the first port of the pool; settings, as in schemas/routing-sidecar.yaml.
*/}}
{{- define "vllm-common.sidecarArguments" -}}
{{- $values := .root.Values -}}
{{- $kv := $values.global.vllm.kvTransfer -}}
{{- $sidecar := .settings -}}
{{- $knows := dict -}}
{{- range $option := list "model-server-port" "mooncake-bootstrap-port" "prefill-max-retries" -}}
{{- $_ := set $knows $option (include "vllm-common.llmdKnows" (dict "root" $.root "program" "sidecar" "option" $option)) -}}
{{- end -}}
{{- $servers := include "vllm-common.sidecarPorts" . | fromJsonArray | len -}}
{{- $tls := ne $values.global.vllm.tls.secretName "" -}}
{{- $args := dict "port" .poolPort "kv-connector" (include "vllm-common.sidecarConnector" .) "secure-proxy" $tls -}}
{{- if $tls -}}
{{- $_ := set $args "cert-path" "/tls" -}}
{{- range $option := list "enable-tls" "tls-insecure-skip-verify" }}{{ $_ := set $args $option "prefiller,decoder" }}{{ end -}}
{{- end -}}
{{- $_ := set $args (ternary "model-server-port" "vllm-port" (ne (index $knows "model-server-port") "")) .role.port -}}
{{- if and (eq $kv.connector "mooncake") (index $knows "mooncake-bootstrap-port") }}{{ $_ := set $args "mooncake-bootstrap-port" (include "vllm-common.bootstrapPort" (dict "root" .root "port" .poolPort)) }}{{ end -}}
{{- if and (gt (int64 $sidecar.prefillRetries) 0) (index $knows "prefill-max-retries") }}{{ $_ := set $args "prefill-max-retries" $sidecar.prefillRetries }}{{ end -}}
{{- if gt $servers 1 }}{{ $_ := set $args "data-parallel-size" $servers }}{{ end -}}
{{- if $sidecar.ssrfProtection -}}
{{- $_ := set $args "enable-ssrf-protection" "true" -}}
{{- $_ := set $args "inference-pool" (printf "%s/%s" .root.Release.Namespace (include "vllm-common.poolName" .)) -}}
{{- end -}}
{{- include "vllm-common.llmdFlags" (mergeOverwrite $args (deepCopy $sidecar.args)) -}}
{{- end }}

{{/*
vllm-common.sidecar: the routing sidecar, which has prefill compute the KV before its own engine answers. As a sidecar
in Kubernetes' sense it ends after the engine, so streams in flight come to their end. Its own health says nothing
of the engine, hence no probe.
Parameters: as for vllm-common.sidecarArguments.
*/}}
{{- define "vllm-common.sidecar" -}}
{{- $sidecar := .settings -}}
name: routing-sidecar
image: {{ include "vllm-common.llmdImage" (dict "root" .root "program" "sidecar" "image" $sidecar.image) }}
imagePullPolicy: {{ $sidecar.image.pullPolicy }}
restartPolicy: Always
command: [/app/pd-sidecar]
args:
  {{- include "vllm-common.sidecarArguments" . | fromJsonArray | toYaml | nindent 2 }}
{{- with include "vllm-common.env" $sidecar.env }}
env:
  {{- . | nindent 2 }}
{{- end }}
ports:
  {{- range include "vllm-common.sidecarPorts" . | fromJsonArray }}
  - name: {{ .name }}
    containerPort: {{ int64 .number }}
  {{- end }}
{{- with include "vllm-common.tlsMount" . }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
resources:
  {{- include "vllm-common.plainResources" $sidecar.resources | nindent 2 }}
securityContext:
  {{- include "vllm-common.containerSecurityContext" . | nindent 2 }}
  {{- if not .root.Values.global.vllm.security.assignedUid }}
  runAsUser: 65532
  runAsGroup: 65532
  {{- end }}
{{- end }}
