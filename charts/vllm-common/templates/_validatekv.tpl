{{/*
vllm-common.validateKvTransfer: connector and tiers against engine version, ports and parallelism.
Parameters: the role context and `at`, the role's values path.
*/}}
{{- define "vllm-common.validateKvTransfer" -}}
{{- include "vllm-common.validateKvTiers" . -}}
{{- if .kv -}}
{{- include "vllm-common.validateConnector" . -}}
{{- include "vllm-common.validateKvPorts" . -}}
{{- include "vllm-common.validateKvRole" . -}}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateConnector" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $kv := $vllm.kvTransfer -}}
{{- $class := include "vllm-common.connectorClass" . -}}
{{- $window := index (include "vllm-common.facts" . | fromJson).connectors $class -}}
{{- $version := include "vllm-common.version" . -}}
{{- $inTree := or (ne $kv.connector "custom") (not $kv.custom.modulePath) -}}
{{- if not $inTree -}}
{{- else if not $window }}
global.vllm.kvTransfer.custom.name: vLLM has no connector {{ $class }}; set kvTransfer.custom.modulePath to the module that holds it
{{- else if semverCompare (printf "<%s" $window.since) $version }}
global.vllm.kvTransfer.connector: vLLM {{ $vllm.version }} has no {{ $class }}, which came with {{ $window.since }}; set a newer global.vllm.version{{ if ne $kv.connector "nixl" }}, or the connector nixl{{ end }}
{{- else if and $window.until (semverCompare (printf ">=%s" ($window.until | default "0.0.0")) $version) }}
global.vllm.kvTransfer.connector: vLLM {{ $vllm.version }} has no {{ $class }}, which was removed in {{ $window.until }}; set the connector nixl, or an older global.vllm.version such as {{ $window.last }}
{{- else if eq $kv.connector "p2pNccl" -}}
{{- $randomised := include "vllm-common.has" (dict "root" .root "feature" "requestIdsRandomised") -}}
{{- $switch := include "vllm-common.has" (dict "root" .root "feature" "requestIdsSwitch") -}}
{{- if and $randomised (not $switch) }}
global.vllm.kvTransfer.connector: in vLLM {{ $vllm.version }} every request through {{ $class }} hangs, because the engine changes the request ids that it reads addresses from, and no setting can cure it; set the connector nixl, or global.vllm.version to 0.13.0 or {{ $window.last }}
{{- end }}
{{- end }}
{{- if and (eq $kv.connector "nixl") $kv.nixl.bidirectional (not (include "vllm-common.has" (dict "root" .root "feature" "nixlBidirectional"))) }}
global.vllm.kvTransfer.nixl.bidirectional: vLLM {{ $vllm.version }} cannot do it (0.21.0 can); set false
{{- end }}
{{- if and (eq $kv.connector "mooncake") (ne $kv.mooncake.protocol "rdma") (not (include "vllm-common.has" (dict "root" .root "feature" "mooncakeProtocol"))) }}
global.vllm.kvTransfer.mooncake.protocol: MooncakeConnector of vLLM {{ $vllm.version }} speaks rdma only (0.14.0 can do {{ $kv.mooncake.protocol }}); set rdma or a newer global.vllm.version
{{- end }}
{{- if and (eq $kv.connector "mooncake") $kv.mooncake.devices (not (include "vllm-common.has" (dict "root" .root "feature" "mooncakeDeviceName"))) }}
global.vllm.kvTransfer.mooncake.devices: vLLM {{ $vllm.version }} cannot choose devices (0.25.0 can); leave it empty
{{- end }}
{{- if and $kv.loadFailurePolicy (not (include "vllm-common.has" (dict "root" .root "feature" "kvLoadFailurePolicy"))) }}
global.vllm.kvTransfer.loadFailurePolicy: vLLM {{ $vllm.version }} has no such field (0.13.0 has it); leave it empty
{{- end }}
{{- if and (eq $kv.connector "mooncake") (eq $vllm.accelerator "cpu") }}
global.vllm.kvTransfer.connector: mooncake needs a GPU; set nixl for global.vllm.accelerator cpu
{{- end }}
{{- if and (eq $kv.connector "p2pNccl") (not (has $vllm.accelerator (list "nvidia" "amd"))) }}
global.vllm.kvTransfer.connector: p2pNccl needs NCCL, which {{ $vllm.accelerator }} does not have; set nixl
{{- end }}
{{- end }}

{{- define "vllm-common.validateKvTiers" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $tiers := $vllm.kvTiers -}}
{{- if and (gt (int64 $tiers.offload.gibPerPod) 0) (not (include "vllm-common.has" (dict "root" .root "feature" "offloadBytes"))) }}
global.vllm.kvTiers.offload.gibPerPod: OffloadingConnector of vLLM {{ $vllm.version }} takes no size in bytes (0.14.0 does); set 0 or a newer global.vllm.version
{{- end }}
{{- $since := (index (include "vllm-common.facts" . | fromJson).connectors "MooncakeStoreConnector").since -}}
{{- if and $tiers.mooncakeStore.enabled (semverCompare (printf "<%s" $since) (include "vllm-common.version" .)) }}
global.vllm.kvTiers.mooncakeStore.enabled: vLLM {{ $vllm.version }} has no MooncakeStoreConnector, which came with {{ $since }}; set false or a newer global.vllm.version
{{- end }}
{{- end }}

{{/* Ports that one pod listens on may not meet: HTTP and the connector's, each with one a rank, and KV events. */}}
{{- define "vllm-common.validateKvPorts" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- $ranges := dict
  "nixl" (list "nixl.sideChannelPort" ($kv.nixl.sideChannelPort | int64) ($.role.parallelism.data | int64))
  "mooncake" (list "mooncake.bootstrapPort" ($kv.mooncake.bootstrapPort | int64) (mul $.role.parallelism.data $.role.parallelism.tensor))
  "p2pNccl" (list "p2pNccl.port" ($kv.p2pNccl.port | int64) (mul $.role.parallelism.data $.role.parallelism.tensor)) -}}
{{- with index $ranges $kv.connector -}}
{{- $first := index . 1 -}}
{{- $last := sub (add $first (index . 2)) 1 -}}
{{- $servers := include "vllm-common.servers" $ | int64 -}}
{{- $taken := dict (printf "%sport" $.at) (list (int64 $.role.port) $servers) -}}
{{- if gt $servers 1 }}{{ $_ := set $taken "the supervisor of the ranks" (list (include "vllm-common.healthPort" $ | int64) 1) }}{{ end -}}
{{- if or (hasKey $.role.args "kv-events-config") (hasKey $.root.Values.global.vllm.args "kv-events-config") }}{{ $_ := set $taken "the KV events" (list 5557 (int64 $.role.parallelism.data)) }}{{ end -}}
{{- range $port, $number := $.ports }}{{ $_ := set $taken (printf "the port %s" $port) (list (int64 $number) 1) }}{{ end -}}
{{- $name := first . -}}
{{- range $owner, $ports := $taken -}}
{{- $meet := max $first (index $ports 0) -}}
{{- if and (le $meet $last) (lt $meet (add (index $ports 0) (index $ports 1))) }}
global.vllm.kvTransfer.{{ $name }}: the ports {{ $first }} to {{ $last }} meet {{ $meet }} of {{ $owner }}; choose others
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What may not differ between roles, and what a connector cannot do. */}}
{{- define "vllm-common.validateKvRole" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- range $flag, $value := .role.args -}}
{{- if has ($flag | replace "_" "-" | regexFind "^[^.]+" | trimPrefix "no-") (list "attention-backend" "block-size" "disable-hybrid-kv-cache-manager" "dtype" "hf-overrides" "kv-cache-dtype" "prefix-caching-hash-algo" "quantization" "speculative-config" "tokenizer" "trust-remote-code") }}
{{ $.at }}args.{{ $flag }}: prefill and decode must agree on it; set global.vllm.args.{{ $flag }} instead
{{- end }}
{{- end -}}
{{- if and (eq $kv.connector "p2pNccl") (gt (int64 .role.parallelism.pipeline) 1) }}
{{ .at }}parallelism.pipeline: p2pNccl knows no pipeline parallelism; set 1
{{- end }}
{{- if and (eq $kv.connector "nixl") (eq .kv "consumer") (gt (int64 .role.parallelism.pipeline) 1) }}
{{ .at }}parallelism.pipeline: with nixl, decode may have no pipeline parallelism; set 1
{{- end }}
{{- $nodes := int64 .role.parallelism.nodes -}}
{{- if and (eq $kv.connector "p2pNccl") (gt $nodes 1) }}
{{ .at }}parallelism.nodes: p2pNccl looks for every rank at the address of the first pod; set 1, or the connector nixl
{{- end }}
{{- if and (eq $kv.connector "p2pNccl") (gt (include "vllm-common.servers" . | int64) 1) }}
{{ .at }}parallelism.loadBalancing: p2pNccl registers one server a pod; set internal, or the connector nixl
{{- end }}
{{- if and (eq $kv.connector "mooncake") (eq .kv "producer") (gt $nodes 1) }}
{{ .at }}parallelism.nodes: with mooncake, a prefill replica of several pods has its bootstrap server on some of them only; set 1, or the connector nixl
{{- else if and (eq $kv.connector "mooncake") (eq .kv "producer") (gt (include "vllm-common.servers" . | int64) 1) }}
{{ .at }}parallelism.loadBalancing: with mooncake, each server of a pod would open its bootstrap server on the same port; set internal, or the connector nixl
{{- end }}
{{- $rdma := or (and (eq $kv.connector "mooncake") (eq $kv.mooncake.protocol "rdma")) -}}
{{- if and $rdma (not (regexMatch "rdma|hca|sriov|roce" (keys .role.resources.extended | sortAlpha | join " "))) }}
{{ .at }}resources.extended: mooncake over rdma needs an RDMA device in the pod; set one such as rdma/ib, or global.vllm.kvTransfer.mooncake.protocol to tcp
{{- end }}
{{- end }}
