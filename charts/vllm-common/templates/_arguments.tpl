{{/*
vllm-common.scalar: a value as the command line wants it. Whole numbers keep all their digits: Go would print
1048576 as 1.048576e+06, which vLLM refuses.
Parameters: the value itself.
*/}}
{{- define "vllm-common.scalar" -}}
{{- if or (kindIs "map" .) (kindIs "slice" .) -}}
{{- toJson . -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.ownedFlags: flags that a typed value renders, with that value's path. `role:` stands for the path of
the role. They may not stand in `args` as well.
*/}}
{{- define "vllm-common.ownedFlags" -}}
api-key: global.vllm.auth.apiKeySecret
all2all-backend: role:parallelism.all2all
data-parallel-address: role:parallelism.nodes
data-parallel-external-lb: role:parallelism.loadBalancing
data-parallel-hybrid-lb: role:parallelism.loadBalancing
data-parallel-multi-port-external-lb: role:parallelism.loadBalancing
data-parallel-rank: role:parallelism.data
data-parallel-size: role:parallelism.data
data-parallel-size-local: role:parallelism.data
data-parallel-start-rank: role:parallelism.data
data-parallel-supervisor-port: role:parallelism.loadBalancing
enable-expert-parallel: role:parallelism.expert
enable-lora: global.vllm.lora.modules
headless: role:parallelism.nodes
kv-transfer-config: global.vllm.kvTransfer
hf-token: global.vllm.huggingface.tokenSecret
lora-modules: global.vllm.lora.modules
master-addr: role:parallelism.nodes
max-lora-rank: global.vllm.lora.maxRank
max-loras: global.vllm.lora.maxActive
model: global.vllm.model.name
nnodes: role:parallelism.nodes
node-rank: role:parallelism.nodes
pipeline-parallel-size: role:parallelism.pipeline
port: role:port
revision: global.vllm.model.revision
served-model-name: global.vllm.model.servedNames
shutdown-timeout: role:drain.timeoutSeconds
ssl-certfile: global.vllm.tls.secretName
ssl-keyfile: global.vllm.tls.secretName
tensor-parallel-size: role:parallelism.tensor
{{- end }}

{{/*
vllm-common.parallelArgs: the flags of a replica's ranks, as a JSON map. A LeaderWorkerSet gives each pod its number
and the first one's address; from --nnodes and --node-rank the engine knows which ranks are its own. The supervisor of
several servers in a pod starts each with the same flags, so --nnodes may not be among them.
Parameters: the role context.
*/}}
{{- define "vllm-common.parallelArgs" -}}
{{- $parallelism := .role.parallelism -}}
{{- $args := dict -}}
{{- range $flag, $size := dict "tensor" $parallelism.tensor "pipeline" $parallelism.pipeline "data" $parallelism.data -}}
{{- if gt (int $size) 1 }}{{ $_ := set $args (printf "%s-parallel-size" $flag) $size }}{{ end -}}
{{- end -}}
{{- if $parallelism.expert }}{{ $_ := set $args "enable-expert-parallel" true }}{{ end -}}
{{- with $parallelism.all2all }}{{ $_ := set $args "all2all-backend" . }}{{ end -}}
{{- $several := gt (int64 $parallelism.nodes) 1 -}}
{{- $spread := and $several (gt (int64 $parallelism.data) 1) -}}
{{- $external := eq $parallelism.loadBalancing "external" -}}
{{- $supervised := gt (include "vllm-common.servers" . | int64) 1 -}}
{{- if $several -}}
{{- $_ := set $args "node-rank" "$(LWS_WORKER_INDEX)" -}}
{{- $_ := set $args (ternary "data-parallel-address" "master-addr" $supervised) "$(LWS_LEADER_ADDRESS)" -}}
{{- if not $supervised }}{{ $_ := set $args "nnodes" $parallelism.nodes }}{{ end -}}
{{- if not $spread }}{{ $_ := set $args "distributed-executor-backend" "mp" }}{{ end -}}
{{- end -}}
{{- if or $supervised (and $spread (not $external)) }}{{ $_ := set $args "data-parallel-size-local" (include "vllm-common.localData" . | int64) }}{{ end -}}
{{- if $supervised -}}
{{- $_ := set $args "data-parallel-multi-port-external-lb" true -}}
{{- $_ := set $args "data-parallel-supervisor-port" (include "vllm-common.healthPort" . | int64) -}}
{{- else if and $spread (ne $parallelism.loadBalancing "internal") -}}
{{- $_ := set $args (printf "data-parallel-%s-lb" $parallelism.loadBalancing) true -}}
{{- end -}}
{{- if .member }}{{ $_ := set $args "headless" true }}{{ end -}}
{{- toJson $args -}}
{{- end }}

{{/*
vllm-common.typedArgs: the flags of typed values, as a JSON map.
Parameters: the role context.
*/}}
{{- define "vllm-common.typedArgs" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $args := include "vllm-common.parallelArgs" . | fromJson -}}
{{- $_ := set $args "port" .role.port -}}
{{- $_ := set $args "served-model-name" (include "vllm-common.servedNames" . | fromJsonArray) -}}
{{- with $vllm.model.revision }}{{ $_ := set $args "revision" . }}{{ end -}}
{{- if and (not .member) (include "vllm-common.has" (dict "root" .root "feature" "shutdownTimeout")) -}}
{{- $_ := set $args "shutdown-timeout" .role.drain.timeoutSeconds -}}
{{- end -}}
{{- if $vllm.tls.secretName -}}
{{- $_ := set $args "ssl-certfile" "/tls/tls.crt" -}}
{{- $_ := set $args "ssl-keyfile" "/tls/tls.key" -}}
{{- end -}}
{{- with include "vllm-common.kvTransferConfig" . }}{{ $_ := set $args "kv-transfer-config" (fromJson .) }}{{ end -}}
{{- with $vllm.lora.modules -}}
{{- $modules := list -}}
{{- range $name, $adapter := . -}}
{{- $module := dict "name" $name "path" $adapter.path -}}
{{- with $adapter.baseModel }}{{ $_ := set $module "base_model_name" . }}{{ end -}}
{{- $modules = append $modules $module -}}
{{- end -}}
{{- $_ := set $args "enable-lora" true -}}
{{- $_ := set $args "lora-modules" $modules -}}
{{- $_ := set $args "max-lora-rank" $vllm.lora.maxRank -}}
{{- $_ := set $args "max-loras" $vllm.lora.maxActive -}}
{{- end -}}
{{- toJson $args -}}
{{- end }}

{{/*
vllm-common.flags: a map of flags as a JSON list of items, in order of name. One item holds flag and value
(`--flag=value`), so that a value may begin with a dash.
Parameters: args, the map; and names of flags that are rendered in another way:
  lists     a list follows its flag item by item (elsewhere it is one JSON value)
  repeated  the flag is given once for each item
  switches  false leaves the flag out, since it has no --no- form
*/}}
{{- define "vllm-common.flags" -}}
{{- $items := list -}}
{{- range $flag, $value := .args -}}
{{- if and (kindIs "bool" $value) (or $value (not (has $flag $.switches))) -}}
{{- $items = append $items (printf "--%s%s" (ternary "" "no-" $value) $flag) -}}
{{- else if and (kindIs "slice" $value) (has $flag $.repeated) -}}
{{- range $value }}{{ $items = append $items (printf "--%s=%s" $flag (include "vllm-common.scalar" .)) }}{{ end -}}
{{- else if and (kindIs "slice" $value) (has $flag $.lists) -}}
{{- $items = append $items (printf "--%s" $flag) -}}
{{- range $value }}{{ $items = append $items (include "vllm-common.scalar" .) }}{{ end -}}
{{- else if not (or (kindIs "invalid" $value) (kindIs "bool" $value)) -}}
{{- $items = append $items (printf "--%s=%s" $flag (include "vllm-common.scalar" $value)) -}}
{{- end -}}
{{- end -}}
{{- toJson $items -}}
{{- end }}

{{/*
vllm-common.arguments: the container's args as a JSON list: the model, then every flag; or those of the simulator. A
pod without API server refuses to be told how many it shall start.
Parameters: the role context.
*/}}
{{- define "vllm-common.arguments" -}}
{{- $free := mergeOverwrite (deepCopy .root.Values.global.vllm.args) (deepCopy .role.args) -}}
{{- if .member }}{{ $free = omit $free "api-server-count" "api_server_count" }}{{ end -}}
{{- $args := merge (include "vllm-common.typedArgs" . | fromJson) (.flags | default dict) $free -}}
{{- if include "vllm-common.simulated" . -}}
{{- include "vllm-common.simulatorArguments" (merge (dict "args" $args) .) -}}
{{- else -}}
{{- $forms := (include "vllm-common.facts" . | fromJson).flags -}}
{{- $flags := include "vllm-common.flags" (merge (dict "args" $args) $forms) | fromJsonArray -}}
{{- prepend $flags (include "vllm-common.modelPath" .) | toJson -}}
{{- end -}}
{{- end }}
