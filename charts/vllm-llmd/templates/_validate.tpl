{{/*
vllm-llmd.validate: what only the whole path shows. Each role's own mistakes are told by vllm-common.validate.
Parameters: root.
*/}}
{{- define "vllm-llmd.validate" -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $messages := "" -}}
{{- range $topic := list "Release" "Connector" "Ports" "Ranks" "Picker" "Sidecar" "Tls" -}}
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
{{- $servers := include "vllm-common.servers" (dict "role" $values.decode) | int64 -}}
{{- $distance := sub $values.decode.port $values.prefill.port -}}
{{- $listens := ternary (printf "on the port of prefill") (printf "on %d ports from that of prefill" $servers) (eq $servers 1) -}}
{{- if and (lt $distance $servers) (gt $distance (sub 0 $servers)) }}
{{ .at }}decode.port: {{ int64 $values.decode.port }} is the sidecar's, which listens {{ $listens }}; set another, such as 8200
{{- end }}
{{- $kv := $values.global.vllm.kvTransfer -}}
{{- $side := int64 $kv.nixl.sideChannelPort -}}
{{- $first := int64 $values.prefill.port -}}
{{- if and (eq $kv.connector "nixl") (lt $first (add $side $values.decode.parallelism.data)) (lt $side (add $first $servers)) }}
global.vllm.kvTransfer.nixl.sideChannelPort: the ports {{ $side }} to {{ sub (add $side $values.decode.parallelism.data) 1 }} meet those of the sidecar from {{ $first }}; choose others
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
{{- end }}
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
{{- range $option := list "config-file" "config-text" "endpoint-selector" "endpoint-target-ports" "pool-name" "pool-namespace" "grpc-port" "grpc-health-port" "metrics-port" "secure-serving" "ha-enable-leader-election" -}}
{{- if hasKey $picker.args $option }}
{{ $.at }}endpointPicker.args.{{ $option }}: the chart derives it; take it out
{{- end }}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validateSidecar" -}}
{{- $sidecar := .root.Values.routingSidecar -}}
{{- if and $sidecar.ssrfProtection (not .root.Values.inferencePool.enabled) }}
{{ .at }}routingSidecar.ssrfProtection: it reads the engines' addresses from an InferencePool; set {{ .at }}inferencePool.enabled to true
{{- end }}
{{- range $option := list "port" "data-parallel-size" "model-server-port" "vllm-port" "kv-connector" "connector" "secure-proxy" "enable-ssrf-protection" "inference-pool" "mooncake-bootstrap-port" -}}
{{- if hasKey $sidecar.args $option }}
{{ $.at }}routingSidecar.args.{{ $option }}: the chart derives it; take it out
{{- end }}
{{- end -}}
{{- if and (gt (int64 $sidecar.prefillRetries) 0) (not (include "vllm-llmd.knows" (dict "root" .root "program" "sidecar" "option" "prefill-max-retries"))) }}
{{ .at }}routingSidecar.prefillRetries: llm-d {{ include "vllm-llmd.version" . }} has no retries (0.9.0 has); set 0
{{- end }}
{{- end }}

{{- define "vllm-llmd.validateTls" -}}
{{- if .root.Values.global.vllm.tls.secretName }}
global.vllm.tls.secretName: this layer speaks plain HTTP from proxy to engines, which NetworkPolicies keep to themselves; end TLS at the Ingress or Gateway before the front door, and leave this empty
{{- end }}
{{- end }}
