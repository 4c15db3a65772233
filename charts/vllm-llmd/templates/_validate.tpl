{{/*
vllm-llmd.validate: what only the whole path shows. Each role's own mistakes are told by vllm-common.validate.
Parameters: root.
*/}}
{{- define "vllm-llmd.validate" -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $messages := "" -}}
{{- range $topic := list "Release" "Connector" "Ports" "Ranks" "Flags" "Picker" "Sidecar" "Tls" -}}
{{- $messages = printf "%s\n%s" $messages (include (printf "vllm-llmd.validate%s" $topic) (dict "root" $.root "at" $at)) -}}
{{- end -}}
{{- range $role := list "prefill" "decode" -}}
{{- $messages = printf "%s\n%s" $messages (include (printf "vllm-llmd.%s" $role) (dict "root" $.root "object" "vllm-common.findings")) -}}
{{- end -}}
{{- include "vllm-common.fail" (splitList "\n" $messages | uniq | join "\n") -}}
{{- end }}

{{/* Each check below prints one message a line. Parameters: root; at, the chart's values path. */}}

{{- define "vllm-llmd.validateRelease" -}}
{{- $version := include "vllm-llmd.version" . -}}
{{- $known := (include "vllm-llmd.facts" . | fromJson).releases -}}
{{- if semverCompare (printf "<%s" (first $known)) $version }}
global.vllm.llmd.version: {{ $version }} is older than {{ first $known }}, the first release of llm-d's router that this chart knows
{{- end }}
{{- if and (semverCompare "<0.9.0" $version) (not .root.Values.endpointPicker.image.repository) }}
{{ .at }}endpointPicker.image.repository: the package of llm-d's picker {{ $version }} was removed from its registry; set your own copy, or global.vllm.llmd.version to 0.9.0 or newer
{{- end }}
{{- end }}

{{- define "vllm-llmd.validateConnector" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- $version := include "vllm-llmd.version" . -}}
{{- $class := include "vllm-common.connectorClass" . -}}
{{- if eq $kv.connector "p2pNccl" }}
global.vllm.kvTransfer.connector: llm-d's sidecar has no protocol for {{ $class }}; set nixl or mooncake, or use the layer pdNccl
{{- else if not (include "vllm-llmd.sidecarConnector" .) -}}
{{- $since := "" -}}
{{- range $name, $connector := (include "vllm-llmd.facts" . | fromJson).sidecar_connectors -}}
{{- if and $connector.since (has $class $connector.engines) (semverCompare (printf ">%s" $version) $connector.since) }}{{ $since = $connector.since }}{{ end -}}
{{- end }}
global.vllm.kvTransfer.connector: llm-d's sidecar {{ $version }} has no protocol for {{ $class }}{{ if $since }} ({{ $since }} has); set a newer global.vllm.llmd.version, or the connector nixl in mode pull{{ else }}; set the connector nixl in mode pull, or mooncake{{ end }}
{{- end }}
{{- end }}

{{- define "vllm-llmd.validatePorts" -}}
{{- $values := .root.Values -}}
{{- if eq (int64 $values.prefill.port) (int64 $values.decode.port) }}
{{ .at }}decode.port: {{ int64 $values.decode.port }} is the sidecar's, which listens on the port of prefill; set another, such as 8200
{{- end }}
{{- end }}

{{- define "vllm-llmd.validateRanks" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $prefill := int64 .root.Values.prefill.parallelism.tensor -}}
{{- $decode := int64 .root.Values.decode.parallelism.tensor -}}
{{- if ne (mod (max $prefill $decode) (min $prefill $decode)) 0 }}
{{ .at }}decode.parallelism.tensor: {{ $decode }}, but prefill has {{ $prefill }}, and one must divide the other
{{- else if and (eq $vllm.kvTransfer.connector "nixl") (gt $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "nixlPrefillTpLarger"))) }}
{{ .at }}prefill.parallelism.tensor: {{ $prefill }}, but decode has {{ $decode }}, and NIXL of vLLM {{ $vllm.version }} needs decode to have at least as many (0.14.0 does not)
{{- else if and (eq $vllm.kvTransfer.connector "mooncake") (ne $prefill $decode) (not (include "vllm-common.has" (dict "root" .root "feature" "mooncakeTensorDiffers"))) }}
{{ .at }}decode.parallelism.tensor: {{ $decode }}, but prefill has {{ $prefill }}, and MooncakeConnector of vLLM {{ $vllm.version }} needs them equal (0.19.0 does not)
{{- end }}
{{- end }}

{{/* Flags that the charts render, with the value that does; nothing where it follows from the others. */}}
{{- define "vllm-llmd.ownedFlags" -}}
endpointPicker:
  cert-path: global.vllm.tls.secretName
  config-file: endpointPicker.extraConfig
  config-text: endpointPicker.extraConfig
  drain-timeout: endpointPicker.drainSeconds
  enable-cert-reload:
  endpoint-selector:
  endpoint-target-ports: prefill.port
  grpc-health-port:
  grpc-port:
  ha-enable-leader-election: endpointPicker.replicas
  health-checking:
  metrics-endpoint-auth: endpointPicker.metricsAuthentication
  metrics-port:
  pool-group:
  pool-name:
  pool-namespace:
  refresh-metrics-interval: endpointPicker.refreshMilliseconds
  secure-serving:
routingSidecar:
  cert-path: global.vllm.tls.secretName
  configuration: routingSidecar.args
  configuration-file: routingSidecar.args
  connector:
  decoder-use-tls:
  enable-ssrf-protection: routingSidecar.ssrfProtection
  enable-tls:
  inference-pool:
  inference-pool-name:
  inference-pool-namespace:
  kv-connector:
  model-server-port: decode.port
  mooncake-bootstrap-port: global.vllm.kvTransfer.mooncake.bootstrapPort
  pool-group:
  port: prefill.port
  prefill-max-retries: routingSidecar.prefillRetries
  prefiller-use-tls:
  secure-proxy:
  secure-serving:
  tls-insecure-skip-verify:
  vllm-port: decode.port
{{- end }}

{{- define "vllm-llmd.validateFlags" -}}
{{- range $program, $flags := include "vllm-llmd.ownedFlags" . | fromYaml -}}
{{- range $flag, $value := $flags -}}
{{- if not (hasKey (index $.root.Values $program).args $flag) -}}
{{- else if $value }}
{{ $.at }}{{ $program }}.args.{{ $flag }}: set {{ if not (hasPrefix "global." $value) }}{{ $.at }}{{ end }}{{ $value }} instead, which renders this flag
{{- else }}
{{ $.at }}{{ $program }}.args.{{ $flag }}: the chart derives it; take it out
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validatePicker" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $known := (include "vllm-llmd.facts" . | fromJson).plugins -}}
{{- range $role, $profile := $picker.profiles -}}
{{- range $scorer, $weight := $profile.scorers -}}
{{- $plugin := index $known $scorer | default dict -}}
{{- if not $weight -}}
{{- else if ne ($plugin.kind | default "") "scorer" }}
{{ $.at }}endpointPicker.profiles.{{ $role }}.scorers.{{ $scorer }}: llm-d has no such scorer; set one of docs/values.md
{{- else if not (include "vllm-llmd.within" (dict "root" $.root "window" $plugin)) }}
{{ $.at }}endpointPicker.profiles.{{ $role }}.scorers.{{ $scorer }}: llm-d {{ include "vllm-llmd.version" $ }} has no such scorer
{{- else if and $plugin.alpha (not (index $picker.args "allow-experimental-plugins")) }}
{{ $.at }}endpointPicker.profiles.{{ $role }}.scorers.{{ $scorer }}: experimental; set {{ $.at }}endpointPicker.args.allow-experimental-plugins to true as well, or leave it out
{{- end }}
{{- end -}}
{{- end -}}
{{- if and (eq .root.Values.proxy.type "gateway") (not .root.Values.inferencePool.enabled) }}
{{ .at }}inferencePool.enabled: a Gateway routes to an InferencePool; set true, or {{ .at }}proxy.type to envoy
{{- end }}
{{- range $name := list "NAMESPACE" "POD_NAME" -}}
{{- if hasKey $picker.env $name }}
{{ $.at }}endpointPicker.env.{{ $name }}: the chart sets it to the pod's own; take it out
{{- end }}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validateSidecar" -}}
{{- $sidecar := .root.Values.routingSidecar -}}
{{- if and $sidecar.ssrfProtection (not .root.Values.inferencePool.enabled) }}
{{ .at }}routingSidecar.ssrfProtection: it reads the engines' addresses from an InferencePool; set {{ .at }}inferencePool.enabled to true
{{- else if and $sidecar.ssrfProtection (semverCompare "<0.10.0" (include "vllm-llmd.version" .)) }}
{{ .at }}routingSidecar.ssrfProtection: llm-d {{ include "vllm-llmd.version" . }} cannot read pools of inference.networking.k8s.io/v1 and would refuse every prefill engine (0.10.0 can); set false, or a newer global.vllm.llmd.version
{{- end }}
{{- if and (gt (int64 $sidecar.prefillRetries) 0) (not (include "vllm-llmd.knows" (dict "root" .root "program" "sidecar" "option" "prefill-max-retries"))) }}
{{ .at }}routingSidecar.prefillRetries: llm-d {{ include "vllm-llmd.version" . }} has no retries (0.9.0 has); set 0
{{- end }}
{{- end }}

{{- define "vllm-llmd.validateTls" -}}
{{- if not .root.Values.global.vllm.tls.secretName -}}
{{- else if semverCompare "<0.10.0" (include "vllm-llmd.version" .) }}
global.vllm.tls.secretName: TLS inside this layer takes llm-d 0.10.0, and this is {{ include "vllm-llmd.version" . }}; set a newer global.vllm.llmd.version, or leave this empty
{{- else if ne .root.Values.proxy.type "envoy" }}
global.vllm.tls.secretName: how a Gateway calls engines by TLS is set at the Gateway, and this chart cannot; set {{ .at }}proxy.type to envoy, or leave this empty
{{- end }}
{{- end }}
