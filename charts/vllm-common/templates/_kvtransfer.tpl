{{/*
Roles of a P/D layer carry one more key in their role context:
  kv  producer (prefill) or consumer (decode); absent in phase 1, whose engines hand no KV to anybody
  router  name of the router's Service, on which p2pNccl registers
*/}}

{{/*
vllm-common.connectorClass: vLLM's name of the connector between prefill and decode.
Parameters: root.
*/}}
{{- define "vllm-common.connectorClass" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- if eq $kv.connector "custom" -}}
{{- $kv.custom.name -}}
{{- else if eq $kv.connector "nixl" -}}
{{- ternary "NixlPushConnector" "NixlConnector" (eq $kv.nixl.mode "push") -}}
{{- else -}}
{{- index (dict "mooncake" "MooncakeConnector" "p2pNccl" "P2pNcclConnector") $kv.connector -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.kvConnector: the configuration of the connector between prefill and decode, as JSON.
Parameters: the role context with `kv`.
*/}}
{{- define "vllm-common.kvConnector" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- $config := dict "kv_connector" (include "vllm-common.connectorClass" .) "kv_role" (printf "kv_%s" .kv) -}}
{{- $extra := dict -}}
{{- if eq $kv.connector "nixl" -}}
{{- $_ := set $extra "backends" $kv.nixl.backends -}}
{{- if include "vllm-common.has" (dict "root" .root "feature" "kvLease") }}{{ $_ := set $extra "kv_lease_duration" $kv.nixl.leaseSeconds }}{{ end -}}
{{- if $kv.nixl.bidirectional }}{{ $_ := set $extra "bidirectional_kv_xfer" true }}{{ end -}}
{{- with $kv.nixl.bufferDevice | default (ternary "cpu" "" (eq .root.Values.global.vllm.accelerator "cpu")) }}{{ $_ := set $config "kv_buffer_device" . }}{{ end -}}
{{- else if eq $kv.connector "mooncake" -}}
{{- $_ := set $extra "num_workers" $kv.mooncake.workers -}}
{{- if include "vllm-common.has" (dict "root" .root "feature" "mooncakeProtocol") }}{{ $_ := set $extra "mooncake_protocol" $kv.mooncake.protocol }}{{ end -}}
{{- with $kv.mooncake.devices }}{{ $_ := set $extra "device_name" (join "," .) }}{{ end -}}
{{- else if eq $kv.connector "p2pNccl" -}}
{{- $_ := set $config "kv_port" $kv.p2pNccl.port -}}
{{- $_ := set $config "kv_buffer_size" (ternary 10 $kv.p2pNccl.bufferBytes (eq .kv "producer")) -}}
{{- $extra = dict
  "proxy_ip" .router
  "proxy_port" (include "vllm-common.scalar" $kv.p2pNccl.registrationPort)
  "http_port" (include "vllm-common.scalar" .role.port)
  "send_type" $kv.p2pNccl.sendType
  "nccl_num_channels" (include "vllm-common.scalar" $kv.p2pNccl.channels)
  "mem_pool_size_gb" $kv.p2pNccl.memoryPoolGiB -}}
{{- else -}}
{{- with $kv.custom.modulePath }}{{ $_ := set $config "kv_connector_module_path" . }}{{ end -}}
{{- end -}}
{{- $extra = merge $extra (deepCopy ((index $kv $kv.connector).extraConfig | default dict)) -}}
{{- if $extra }}{{ $_ := set $config "kv_connector_extra_config" $extra }}{{ end -}}
{{- toJson $config -}}
{{- end }}

{{/*
vllm-common.kvTiers: the configurations of the cache tiers, as a JSON list, nearest first. Prefill writes to a shared
store, decode only reads from it. Offloading is told the bytes of one data-parallel rank, on all its pods.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvTiers" -}}
{{- $tiers := .root.Values.global.vllm.kvTiers -}}
{{- $parallelism := .role.parallelism -}}
{{- $configs := list -}}
{{- with $tiers.offload.gibPerPod | int64 -}}
{{- $configs = append $configs (dict "kv_connector" "OffloadingConnector" "kv_role" "kv_both" "kv_connector_extra_config" (dict "cpu_bytes_to_use" (div (mul . 1073741824 $parallelism.nodes) $parallelism.data))) -}}
{{- end -}}
{{- if $tiers.lmcache.enabled -}}
{{- $configs = append $configs (dict "kv_connector" "LMCacheConnectorV1" "kv_role" "kv_both") -}}
{{- end -}}
{{- if $tiers.mooncakeStore.enabled -}}
{{- $role := ternary "kv_consumer" "kv_both" (eq (.kv | default "") "consumer") -}}
{{- $configs = append $configs (dict "kv_connector" "MooncakeStoreConnector" "kv_role" $role) -}}
{{- end -}}
{{- toJson $configs -}}
{{- end }}

{{/*
vllm-common.kvTransferConfig: the value of --kv-transfer-config, as JSON; nothing for a role without connector and
tiers. Several connectors stand in one MultiConnector, the transfer first: loads come from the first that has tokens.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvTransferConfig" -}}
{{- $configs := include "vllm-common.kvTiers" . | fromJsonArray -}}
{{- if .kv }}{{ $configs = prepend $configs (include "vllm-common.kvConnector" . | fromJson) }}{{ end -}}
{{- if $configs -}}
{{- $config := first $configs -}}
{{- if gt (len $configs) 1 -}}
{{- $config = dict "kv_connector" "MultiConnector" "kv_role" (printf "kv_%s" (.kv | default "both")) "kv_connector_extra_config" (dict "connectors" $configs) -}}
{{- end -}}
{{- with .root.Values.global.vllm.kvTransfer.loadFailurePolicy }}{{ $_ := set $config "kv_load_failure_policy" . }}{{ end -}}
{{- toJson $config -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.kvEnvironment: the variables of connector and tiers, as a JSON map. Peers dial the address that an engine
announces, so it must be the pod's own.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvEnvironment" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $kv := $vllm.kvTransfer -}}
{{- $tiers := $vllm.kvTiers -}}
{{- $env := dict -}}
{{- $podIP := dict "valueFrom" (dict "fieldRef" (dict "fieldPath" "status.podIP")) -}}
{{- if .kv -}}
{{- $_ := set $env "VLLM_HOST_IP" $podIP -}}
{{- if eq $kv.connector "nixl" -}}
{{- $_ := set $env "VLLM_NIXL_SIDE_CHANNEL_HOST" $podIP -}}
{{- $_ := set $env "VLLM_NIXL_SIDE_CHANNEL_PORT" $kv.nixl.sideChannelPort -}}
{{- if include "vllm-common.has" (dict "root" .root "feature" "nixlAbortTimeout") }}{{ $_ := set $env "VLLM_NIXL_ABORT_REQUEST_TIMEOUT" $kv.nixl.abortTimeoutSeconds }}{{ end -}}
{{- else if eq $kv.connector "mooncake" -}}
{{- $_ := set $env "VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT" $kv.mooncake.abortTimeoutSeconds -}}
{{- if eq .kv "producer" }}{{ $_ := set $env "VLLM_MOONCAKE_BOOTSTRAP_PORT" $kv.mooncake.bootstrapPort }}{{ end -}}
{{- else if and (eq $kv.connector "p2pNccl") (include "vllm-common.has" (dict "root" .root "feature" "requestIdsSwitch")) -}}
{{- $_ := set $env "VLLM_DISABLE_REQUEST_ID_RANDOMIZATION" "1" -}}
{{- end -}}
{{- end -}}
{{- if $tiers.lmcache.enabled -}}
{{- $_ := set $env "LMCACHE_CHUNK_SIZE" $tiers.lmcache.chunkSize -}}
{{- $_ := set $env "LMCACHE_LOCAL_CPU" "True" -}}
{{- $_ := set $env "LMCACHE_MAX_LOCAL_CPU_SIZE" $tiers.lmcache.gibPerRank -}}
{{- with $tiers.lmcache.remoteUrl }}{{ $_ := set $env "LMCACHE_REMOTE_URL" . }}{{ end -}}
{{- end -}}
{{- if $tiers.mooncakeStore.enabled }}{{ $_ := set $env "MOONCAKE_CONFIG_PATH" "/etc/mooncake/store.json" }}{{ end -}}
{{- $shared := or .kv $tiers.mooncakeStore.enabled $tiers.lmcache.enabled -}}
{{- if and $shared (not (include "vllm-common.has" (dict "root" .root "feature" "prefixHashSeedFixed"))) }}{{ $_ := set $env "PYTHONHASHSEED" "0" }}{{ end -}}
{{- toJson $env -}}
{{- end }}

{{/*
vllm-common.kvAnnotations: what the router reads from an engine's pod: where Mooncake's bootstrap server listens.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvAnnotations" -}}
{{- $kv := .root.Values.global.vllm.kvTransfer -}}
{{- if and (eq (.kv | default "") "producer") (eq $kv.connector "mooncake") -}}
vllm.ai/bootstrap-port: {{ include "vllm-common.bootstrapPort" (dict "root" .root "port" .role.port) | quote }}
{{- end -}}
{{- end }}

{{/*
vllm-common.kvHostMemoryGiB: host memory of one pod for connector and tiers, in GiB, on top of what the values ask for.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvHostMemoryGiB" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $tiers := $vllm.kvTiers -}}
{{- $ranks := include "vllm-common.podRanks" . -}}
{{- $pool := ternary $vllm.kvTransfer.p2pNccl.memoryPoolGiB 0 (and (ne (.kv | default "") "") (eq $vllm.kvTransfer.connector "p2pNccl")) -}}
{{- $lmcache := ternary $tiers.lmcache.gibPerRank 0 $tiers.lmcache.enabled -}}
{{- $store := ternary (add $tiers.mooncakeStore.segmentGiB $tiers.mooncakeStore.bufferGiB) 0 $tiers.mooncakeStore.enabled -}}
{{- ternary 0 (add $tiers.offload.gibPerPod (mul $ranks (add $pool $lmcache $store))) (ne (include "vllm-common.simulated" .) "") -}}
{{- end }}

{{/*
vllm-common.kvStoreConfig: the ConfigMap that tells engines where the Mooncake store is; a role has its own.
Parameters: the role context.
*/}}
{{- define "vllm-common.kvStoreConfig" -}}
{{- $store := .root.Values.global.vllm.kvTiers.mooncakeStore -}}
{{- if and $store.enabled (not (include "vllm-common.simulated" .)) -}}
{{- $config := dict
  "mode" (ternary "embedded" "standalone-store" (gt (int64 $store.segmentGiB) 0))
  "metadata_server" $store.metadata
  "master_server_address" $store.master
  "global_segment_size" (ternary 0 (printf "%dGB" (int64 $store.segmentGiB)) (eq (int64 $store.segmentGiB) 0))
  "local_buffer_size" (printf "%dGB" (int64 $store.bufferGiB))
  "protocol" $store.protocol
  "device_name" (join "," $store.devices) -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "vllm-common.metadata" (merge (dict "objectName" (printf "%s-kv-store" (include "vllm-common.fullname" .))) .) | nindent 2 }}
data:
  store.json: {{ toJson $config | quote }}
{{- end }}
{{- end }}
