{{/*
vllm-llmd.validate: what only the whole path shows. Each role's own mistakes are told by vllm-common.validate.
Parameters: root.
*/}}
{{- define "vllm-llmd.validate" -}}
{{- $at := include "vllm-common.valuesPath" . -}}
{{- $messages := "" -}}
{{- range $topic := list "Release" "Connector" "Ports" "Ranks" "Flags" "Picker" "Plugins" "Precise" "Pool" "Scaling" "Gateway" "Sidecar" "Tls" -}}
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
{{- $events := int64 $values.endpointPicker.prefixCache.eventsPort -}}
{{- if and (include "vllm-llmd.precise" .) (has $events (list (int64 $values.prefill.port) (int64 $values.decode.port))) }}
{{ .at }}endpointPicker.prefixCache.eventsPort: {{ $events }} is the port of {{ .at }}{{ ternary "prefill" "decode" (eq $events (int64 $values.prefill.port)) }}; set another, such as 5557
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
  data-parallel-size: decode.parallelism.data
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
{{- range $name := list "NAMESPACE" "POD_NAME" -}}
{{- if hasKey $picker.env $name }}
{{ $.at }}endpointPicker.env.{{ $name }}: the chart sets it to the pod's own; take it out
{{- end }}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validatePlugins" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- range $role, $profile := $picker.profiles -}}
{{- $place := printf "%sendpointPicker.profiles.%s" $.at $role -}}
{{- range $scorer, $weight := $profile.scorers -}}
{{- if $weight }}{{ include "vllm-llmd.validatePlugin" (dict "root" $.root "at" $.at "place" (printf "%s.scorers.%s" $place $scorer) "type" $scorer "kind" "scorer") }}{{ end -}}
{{- end -}}
{{- range $profile.filters -}}
{{- include "vllm-llmd.validatePlugin" (dict "root" $.root "at" $.at "place" (printf "%s.filters" $place) "type" . "kind" "filter") -}}
{{- end -}}
{{- end -}}
{{- range $type, $parameters := $picker.extraPluginParameters -}}
{{- include "vllm-llmd.validatePlugin" (dict "root" $.root "at" $.at "place" (printf "%sendpointPicker.extraPluginParameters.%s" $.at $type) "type" $type "kind" "") -}}
{{- end -}}
{{- end }}

{{/* One plugin that the user names. Parameters: as above, and place; type; kind, empty for any. */}}
{{- define "vllm-llmd.validatePlugin" -}}
{{- $plugin := index (include "vllm-llmd.facts" . | fromJson).plugins .type | default dict -}}
{{- $what := .kind | default "plugin" -}}
{{- $named := ternary "" (printf " %s" .type) (hasSuffix .type .place) -}}
{{- if or (not $plugin) (and .kind (ne $plugin.kind .kind)) }}
{{ .place }}: llm-d has no such {{ $what }}{{ $named }}{{ if eq .kind "scorer" }}; set one of docs/values.md{{ end }}
{{- else if not (include "vllm-llmd.within" (dict "root" .root "window" $plugin)) }}
{{ .place }}: llm-d {{ include "vllm-llmd.version" . }} has no such {{ $what }}{{ $named }}
{{- else if and $plugin.alpha (not (index .root.Values.endpointPicker.args "allow-experimental-plugins")) }}
{{ .place }}:{{ $named }} experimental; set {{ .at }}endpointPicker.args.allow-experimental-plugins to true as well, or leave it out
{{- end }}
{{- end }}

{{- define "vllm-llmd.validatePrecise" -}}
{{- if include "vllm-llmd.precise" . -}}
{{- $values := .root.Values -}}
{{- $vllm := $values.global.vllm -}}
{{- $cache := $values.endpointPicker.prefixCache -}}
{{- $producer := index (include "vllm-llmd.facts" . | fromJson).plugins "precise-prefix-cache-producer" -}}
{{- $type := printf "%sendpointPicker.prefixCache.type" .at -}}
{{- if not (include "vllm-llmd.within" (dict "root" .root "window" $producer)) }}
{{ $type }}: precise, but llm-d {{ include "vllm-llmd.version" . }} has no precise index of this form ({{ $producer.since }} has); set approximate, or a newer global.vllm.llmd.version
{{- end }}
{{- $names := include "vllm-common.servedNames" . | fromJsonArray -}}
{{- if gt (len $names) 1 }}
global.vllm.model.servedNames: {{ len $names }} names, but a precise index knows the model by the first alone; leave one, and map others to it by {{ .at }}inferencePool.rewrites
{{- end }}
{{- if contains "@" (first $names) }}
global.vllm.model.servedNames: the name {{ first $names }} has an @, which parts the topic of KV events; set another
{{- end }}
{{- range $role := list "prefill" "decode" -}}
{{- if gt (int64 (index $values $role).parallelism.data) 1 }}
{{ $.at }}{{ $role }}.parallelism.data: with a precise index the picker hears one rank of a pod; set 1, or {{ $type }} to approximate
{{- end }}
{{- end -}}
{{- range $place, $args := dict "global.vllm.args" $vllm.args (printf "%sprefill.args" .at) $values.prefill.args (printf "%sdecode.args" .at) $values.decode.args -}}
{{- range $flag, $value := $args -}}
{{- $plain := $flag | replace "_" "-" -}}
{{- if or (and (eq $plain "enable-prefix-caching") (eq (toString $value) "false")) (and (eq $plain "no-enable-prefix-caching") $value) }}
{{ $place }}.{{ $flag }}: without prefix caching there are no KV events; take it out, or set {{ $type }} to approximate
{{- end }}
{{- end -}}
{{- end -}}
{{- if not $cache.tokenizerUrl -}}
{{- if not (include "vllm-common.has" (dict "root" .root "feature" "renderEndpoint")) }}
{{ .at }}endpointPicker.prefixCache.tokenizerUrl: empty, but vLLM {{ $vllm.version }} does not render prompts into tokens (0.18.0 does); set a server that does, or a newer global.vllm.version
{{- end }}
{{- if $vllm.auth.apiKeySecret.name }}
{{ .at }}endpointPicker.prefixCache.tokenizerUrl: empty, but the engines want an API key, which the picker does not send; set a server without one, such as `vllm launch render`
{{- end }}
{{- if $vllm.tls.secretName }}
{{ .at }}endpointPicker.prefixCache.tokenizerUrl: empty, but the engines' certificate is not one that the picker trusts; set a server that it can call, or leave global.vllm.tls.secretName empty
{{- end }}
{{- if include "vllm-llmd.prefillMayGo" . }}
{{ .at }}endpointPicker.prefixCache.tokenizerUrl: empty, but prefill may scale to 0, and prompts are tokenized there; set a server of its own
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validatePool" -}}
{{- $pool := .root.Values.inferencePool -}}
{{- $served := include "vllm-common.servedNames" . | fromJsonArray -}}
{{- range $name, $adapter := .root.Values.global.vllm.lora.modules }}{{ $served = append $served $name }}{{ end -}}
{{- range $kind := list "objectives" "rewrites" -}}
{{- if and (index $pool $kind) (not $pool.enabled) }}
{{ $.at }}inferencePool.{{ $kind }}: given, but they belong to an InferencePool; set {{ $.at }}inferencePool.enabled to true
{{- end }}
{{- end -}}
{{- $owner := dict -}}
{{- range $name, $rewrite := $pool.rewrites -}}
{{- range $model := ($rewrite | default dict).models | default (ternary (list "") list (not (empty $rewrite))) -}}
{{- if hasKey $owner $model }}
{{ $.at }}inferencePool.rewrites.{{ $name }}.models: {{ $model | default "every name" }} is that of {{ index $owner $model }} as well; leave it to one
{{- end }}
{{- $_ := set $owner $model $name -}}
{{- end -}}
{{- range $target, $weight := ($rewrite | default dict).targets -}}
{{- if and $weight (not (has $target $served)) }}
{{ $.at }}inferencePool.rewrites.{{ $name }}.targets: no engine serves {{ $target }}; set one of {{ join ", " $served }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validateScaling" -}}
{{- $metrics := (include "vllm-llmd.facts" . | fromJson).metrics -}}
{{- range $role := list "prefill" "decode" -}}
{{- $scaling := (index $.root.Values $role).autoscaling -}}
{{- $place := printf "%s%s.autoscaling" $.at $role -}}
{{- if eq $scaling.type "keda" -}}
{{- $metric := index $metrics $scaling.metric | default dict -}}
{{- if and $metric.flow_control (not $.root.Values.endpointPicker.flowControl.enabled) }}
{{ $place }}.metric: {{ $scaling.metric }} is counted only by the picker's flow control; set {{ $.at }}endpointPicker.flowControl.enabled to true, or another metric
{{- end }}
{{- if eq (int64 $scaling.minReplicas) 0 -}}
{{- if eq $role "decode" }}
{{ $place }}.minReplicas: 0, but the picker answers 429 while it knows prefill engines and no decode engine; set 1 or more
{{- else if not $metric }}
{{ $place }}.minReplicas: 0, but {{ $scaling.metric }} comes from running engines, so none would ever start; set 1, or the metric request_running or flow_control_queue_size
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-llmd.validateGateway" -}}
{{- $gateway := .root.Values.proxy.gateway -}}
{{- if eq .root.Values.proxy.type "gateway" -}}
{{- if not .root.Values.inferencePool.enabled }}
{{ .at }}inferencePool.enabled: a Gateway routes to an InferencePool; set true, or {{ .at }}proxy.type to envoy
{{- end }}
{{- if and $gateway.create $gateway.parentRefs }}
{{ .at }}proxy.gateway.parentRefs: given although {{ .at }}proxy.gateway.create makes a Gateway; set one of them
{{- else if not (or $gateway.create $gateway.parentRefs) }}
{{ .at }}proxy.gateway.parentRefs: empty; name the Gateway that leads here, or set {{ .at }}proxy.gateway.create to true
{{- end }}
{{- if eq $gateway.implementation "other" -}}
{{- $closed := eq .root.Values.inferencePool.failureMode "FailClose" -}}
{{- if not (or $gateway.clientHeadersRemoved (and .root.Values.routingSidecar.ssrfProtection $closed)) }}
{{ .at }}proxy.gateway.clientHeadersRemoved: false, and whoever sends {{ (include "vllm-llmd.facts" . | fromJson).picker_headers | join ", " }} chooses where prompts go; have your Gateway take them from requests before it asks the picker and set true, or set {{ .at }}routingSidecar.ssrfProtection to true with {{ .at }}inferencePool.failureMode FailClose
{{- end }}
{{- if and $gateway.create (not $gateway.className) }}
{{ .at }}proxy.gateway.className: empty, and the class of an implementation of type other is not known; set it
{{- end }}
{{- if not $gateway.address }}
{{ .at }}proxy.gateway.address: empty, and the Service of a Gateway of type other is not known; set the host at which pods reach it
{{- end }}
{{- end }}
{{- end }}
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
