{{/*
vllm-common.validate: ends the rendering when vllm-common.findings says anything.
Parameters: the role context.
*/}}
{{- define "vllm-common.validate" -}}
{{- include "vllm-common.findings" . | include "vllm-common.fail" -}}
{{- end }}

{{/*
vllm-common.findings: what no schema can see, one message a line, saying where, what was given and what to set.
Parameters: the role context; optional `at`, the role's values path.
*/}}
{{- define "vllm-common.findings" -}}
{{- $at := .at | default (include "vllm-common.valuesPath" .) -}}
{{- $topics := list "Version" "Flags" "Workload" "Parallelism" "LoadBalancing" "Environment" "Source" "Security" "Resources" "Volumes" "Rollout" "Autoscaling" "KvTransfer" -}}
{{- if include "vllm-common.simulated" . }}{{ $topics = list "Simulator" "Flags" "Workload" "Environment" "Security" "Resources" "Rollout" "Autoscaling" }}{{ end -}}
{{- range $topic := $topics -}}
{{- include (printf "vllm-common.validate%s" $topic) (merge (dict "at" $at) $) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.fail: ends the rendering when there are messages.
Parameters: the messages, one a line.
*/}}
{{- define "vllm-common.fail" -}}
{{- $lines := without (splitList "\n" .) "" -}}
{{- if $lines -}}
{{- printf "\n\nThese values cannot work:\n- %s\n" (join "\n- " $lines) | fail -}}
{{- end -}}
{{- end }}

{{/* Each check below prints one message a line. Parameters: the role context and `at`, the role's values path. */}}

{{- define "vllm-common.validateSimulator" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $oldest := (include "vllm-common.facts" . | fromJson).simulator.oldest -}}
{{- $known := include "vllm-common.simulatorOptions" . | fromJsonArray -}}
{{- $owned := include "vllm-common.ownedFlags" . | fromYaml -}}
{{- if semverCompare (printf "<%s" $oldest) $vllm.simulator.version }}
global.vllm.simulator.version: {{ $vllm.simulator.version }} is older than {{ $oldest }}, the first release of the simulator that these charts know
{{- end }}
{{- range $flag, $value := $vllm.simulator.args -}}
{{- with index $owned ($flag | trimPrefix "no-") }}
global.vllm.simulator.args.{{ $flag }}: set {{ . | replace "role:" $.at }} instead
{{- else }}
{{- if not (has $flag $known) }}
global.vllm.simulator.args.{{ $flag }}: the simulator {{ $vllm.simulator.version }} has no such flag; take it out
{{- end }}
{{- end }}
{{- end -}}
{{- if $vllm.test.enabled }}
global.vllm.test.enabled: the simulator's image has no Python to run the test with; set false
{{- end }}
{{- if and .kv (eq $vllm.kvTransfer.connector "p2pNccl") }}
global.vllm.kvTransfer.connector: the simulator registers with no router, which p2pNccl needs; set nixl or mooncake
{{- end }}
{{- end }}

{{- define "vllm-common.validateVersion" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $version := include "vllm-common.version" . -}}
{{- $official := include "vllm-common.accelerator" . | fromJson -}}
{{- if not $version }}
global.vllm.version: {{ $vllm.version | quote }} is not a vLLM release; set three numbers such as "0.33.0"
{{- else if semverCompare "<0.11.0" $version }}
global.vllm.version: {{ $vllm.version }} is older than 0.11.0, the first release whose flags these charts know
{{- else if and (not $vllm.image.repository) (semverCompare (printf "<%s" $official.since) $version) }}
global.vllm.image.repository: vLLM {{ $vllm.version }} has no official image for {{ $vllm.accelerator }} (the first is {{ $official.since }}); set your own repository or a newer global.vllm.version
{{- end }}
{{- end }}

{{- define "vllm-common.validateFlags" -}}
{{- $owned := merge (include "vllm-common.ownedFlags" . | fromYaml) (.owners | default dict) -}}
{{- range $place, $args := dict "global.vllm.args" .root.Values.global.vllm.args (printf "%sargs" .at) .role.args -}}
{{- range $flag, $value := $args -}}
{{- $plain := $flag | replace "_" "-" | regexFind "^[^.]+" | trimPrefix "no-" -}}
{{- with index $owned $plain }}
{{ $place }}.{{ $flag }}: set {{ . | replace "role:" $.at }} instead, which renders this flag
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateWorkload" -}}
{{- $grouped := eq .role.workload "leaderWorkerSet" -}}
{{- $nodes := int64 .role.parallelism.nodes -}}
{{- if and $grouped (eq $nodes 1) }}
{{ .at }}workload: leaderWorkerSet, but {{ .at }}parallelism.nodes is 1; set 2 or more pods, or the workload deployment
{{- else if and (not $grouped) (gt $nodes 1) }}
{{ .at }}parallelism.nodes: {{ $nodes }}, but a replica of a Deployment is one pod; set {{ .at }}workload to leaderWorkerSet
{{- else if and $grouped (not (include "vllm-common.has" (dict "root" .root "feature" "severalNodes"))) }}
{{ .at }}parallelism.nodes: vLLM {{ .root.Values.global.vllm.version }} spans pods only by way of Ray, which these charts do not start (0.11.1 needs none); set 1 or a newer global.vllm.version
{{- end }}
{{- if and $grouped (regexMatch "^[0-9]" (include "vllm-common.groupName" .)) }}
global.vllm.nameOverride: the release name {{ .root.Release.Name }} begins with a digit, which the controller of LeaderWorkerSets refuses; set a name that begins with a letter
{{- end }}
{{- if and .role.group.exclusiveTopology (not $grouped) }}
{{ .at }}group.exclusiveTopology: {{ .role.group.exclusiveTopology }} holds for the workload leaderWorkerSet only; leave it empty, or use {{ .at }}scheduling
{{- end }}
{{- range $place, $args := dict "global.vllm.args" .root.Values.global.vllm.args (printf "%sargs" .at) .role.args -}}
{{- $backend := index $args "distributed-executor-backend" | default "mp" }}
{{- if and $grouped (ne $backend "mp") }}
{{ $place }}.distributed-executor-backend: {{ $backend }}, but pods of a LeaderWorkerSet are joined by processes of their own; take it out
{{- end }}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateParallelism" -}}
{{- $parallelism := .role.parallelism -}}
{{- $nodes := int64 $parallelism.nodes -}}
{{- $data := int64 $parallelism.data -}}
{{- $ranks := mul $parallelism.tensor $parallelism.pipeline -}}
{{- if eq $data 1 -}}
{{- if ne (mod $ranks $nodes) 0 }}
{{ .at }}parallelism.nodes: {{ $nodes }} pods cannot share {{ $ranks }} ranks (tensor times pipeline) equally; set a number that divides them
{{- end }}
{{- else if ne (mod $data $nodes) 0 }}
{{ .at }}parallelism.data: {{ $nodes }} pods cannot share {{ $data }} data-parallel ranks equally; set a multiple of {{ .at }}parallelism.nodes
{{- else if and (gt $nodes 1) (not $parallelism.expert) }}
{{ .at }}parallelism.data: ranks of a dense model have nothing to tell each other across pods; raise {{ .at }}replicas instead, or set {{ .at }}parallelism.expert to true for a mixture of experts
{{- end }}
{{- if $parallelism.all2all -}}
{{- $version := include "vllm-common.version" . -}}
{{- $names := list -}}
{{- range (include "vllm-common.facts" . | fromJson).all2all -}}
{{- if and (semverCompare (printf ">=%s" .since) $version) (or (not .until) (semverCompare (printf "<%s" (.until | default "0.0.0")) $version)) }}{{ $names = .names }}{{ end -}}
{{- end -}}
{{- if not $parallelism.expert }}
{{ .at }}parallelism.all2all: {{ $parallelism.all2all }} does nothing without experts on ranks of their own; set {{ .at }}parallelism.expert to true, or leave it empty
{{- else if not $names }}
{{ .at }}parallelism.all2all: vLLM {{ .root.Values.global.vllm.version }} has no --all2all-backend (0.11.1 has); leave it empty
{{- else if not (has $parallelism.all2all $names) }}
{{ .at }}parallelism.all2all: vLLM {{ .root.Values.global.vllm.version }} has no {{ $parallelism.all2all }}; set one of {{ join ", " $names }}
{{- end }}
{{- end }}
{{- end }}

{{- define "vllm-common.validateLoadBalancing" -}}
{{- $parallelism := .role.parallelism -}}
{{- $how := $parallelism.loadBalancing -}}
{{- $data := int64 $parallelism.data -}}
{{- $local := include "vllm-common.localData" . | int64 -}}
{{- $servers := include "vllm-common.servers" . | int64 -}}
{{- $last := sub (add .role.port $servers) 1 -}}
{{- $health := include "vllm-common.healthPort" . | int64 -}}
{{- if eq $how "internal" -}}
{{- else if eq $data 1 }}
{{ .at }}parallelism.loadBalancing: {{ $how }}, but {{ .at }}parallelism.data is 1; set internal, or several ranks
{{- else if not $parallelism.expert }}
{{ .at }}parallelism.loadBalancing: {{ $how }} is for ranks that share the experts of a model; raise {{ .at }}replicas instead, or set {{ .at }}parallelism.expert to true
{{- else if and (eq $how "hybrid") (eq (int64 $parallelism.nodes) 1) }}
{{ .at }}parallelism.loadBalancing: hybrid has one API server a pod, and the replica is one pod; set internal, which is the same
{{- else if and (eq $how "hybrid") (eq $local 1) }}
{{ .at }}parallelism.loadBalancing: hybrid chooses among the ranks of a pod, and each has one; set external, which is the same
{{- else if gt $servers 1 -}}
{{- if gt $servers (int64 (.serverPorts | default 1)) }}
{{ .at }}parallelism.loadBalancing: external has {{ $servers }} ports in a pod, {{ if .serverPorts }}and a pool knows {{ .serverPorts }} at most; set more {{ .at }}parallelism.nodes{{ else }}of which this layer finds the first only; set internal or hybrid, or use the layer llmd{{ end }}
{{- end }}
{{- if not (include "vllm-common.has" (dict "root" .root "feature" "serverForEachRank")) }}
{{ .at }}parallelism.loadBalancing: vLLM {{ .root.Values.global.vllm.version }} cannot serve each rank of a pod on a port of its own (0.22.0 can); set internal or hybrid, or a newer global.vllm.version
{{- end }}
{{- if gt $last 65535 }}
{{ .at }}port: {{ int64 .role.port }} leaves no room for {{ $servers }} ports; set a lower one
{{- else if and (le (int64 .role.port) $health) (le $health $last) }}
{{ .at }}port: the ports {{ int64 .role.port }} to {{ $last }} of the ranks meet {{ $health }}, where their supervisor listens; set another
{{- end }}
{{- end }}
{{- end }}

{{- define "vllm-common.validateEnvironment" -}}
{{- $owned := dict
  "HF_ENDPOINT" "set global.vllm.huggingface.endpoint instead"
  "HF_HUB_OFFLINE" "set global.vllm.huggingface.offline instead"
  "HF_TOKEN" "set global.vllm.huggingface.tokenSecret instead, so that the token stays in a Secret"
  "VLLM_API_KEY" "set global.vllm.auth.apiKeySecret instead, so that the key stays in a Secret"
  "VLLM_PORT" (printf "vLLM reads it as the base of its internal ports; for the HTTP port set %sport" .at)
  "POD_IP" "the charts set it to the pod's own address" -}}
{{- range $place, $env := dict "global.vllm.env" .root.Values.global.vllm.env (printf "%senv" .at) .role.env -}}
{{- range $name, $value := $env -}}
{{- with index $owned $name }}
{{ $place }}.{{ $name }}: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateSource" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $source := $vllm.model.source -}}
{{- if and (eq $source.type "hf") $vllm.huggingface.offline (ne .role.cache.type "pvc") }}
global.vllm.huggingface.offline: the cache of type {{ .role.cache.type }} starts empty, so the model cannot be found; set {{ .at }}cache.type to pvc, or another global.vllm.model.source.type
{{- else if and (eq $source.type "pvc") (not $source.pvc.claimName) }}
global.vllm.model.source.pvc.claimName: empty; set the claim that holds the model
{{- else if and (eq $source.type "oci") (not $source.oci.reference) }}
global.vllm.model.source.oci.reference: empty; set the image that holds the model
{{- else if and (eq $source.type "hostPath") (not $source.hostPath.path) }}
global.vllm.model.source.hostPath.path: empty; set the folder that holds the model
{{- end }}
{{- if and (eq $source.type "oci") (semverCompare "<1.33.0-0" .root.Capabilities.KubeVersion.Version) }}
global.vllm.model.source.type: oci needs image volumes, which Kubernetes {{ .root.Capabilities.KubeVersion.Version }} does not mount by default (1.33 does); set hf, pvc or hostPath
{{- end }}
{{- if and (ne $source.type "hf") $vllm.model.revision }}
global.vllm.model.revision: {{ $vllm.model.revision | quote }} names a revision of the hub, but the source is {{ $source.type }}; leave it empty
{{- end }}
{{- end }}

{{- define "vllm-common.validateSecurity" -}}
{{- $security := .root.Values.global.vllm.security -}}
{{- if and $security.assignedUid (not (kindIs "invalid" $security.runAsUser)) }}
global.vllm.security.runAsUser: {{ int64 $security.runAsUser }} given although assignedUid leaves the user to the platform; set one of them
{{- end }}
{{- end }}

{{- define "vllm-common.validateResources" -}}
{{- $resources := .role.resources -}}
{{- $cpuOnly := eq .root.Values.global.vllm.accelerator "cpu" -}}
{{- with include "vllm-common.gpuResource" . -}}
{{- if hasKey $resources.extended . }}
{{ $.at }}resources.extended: {{ . }} is derived from {{ $.at }}parallelism; take it out
{{- end }}
{{- if $cpuOnly }}
{{ $.at }}resources.gpuResource: {{ . }} given although global.vllm.accelerator is cpu; leave it empty
{{- end }}
{{- end }}
{{- $shm := include "vllm-common.shmSize" . -}}
{{- if and $shm $resources.limits.memory -}}
{{- $limit := include "vllm-common.plusGiB" (dict "quantity" $resources.limits.memory "gib" (include "vllm-common.kvHostMemoryGiB" .)) -}}
{{- if ge (include "vllm-common.amount" $shm | float64) (include "vllm-common.amount" $limit | float64) }}
{{ .at }}shm.size: {{ $shm }} does not fit into the memory limit {{ $limit }}, against which it counts; set a larger {{ .at }}resources.limits.memory or a smaller shm.size
{{- end }}
{{- end }}
{{- range $name, $limit := $resources.limits -}}
{{- $request := index $resources.requests $name -}}
{{- if and $limit $request -}}
{{- if gt (include "vllm-common.amount" $request | float64) (include "vllm-common.amount" $limit | float64) }}
{{ $.at }}resources.requests.{{ $name }}: {{ $request }} is more than the limit {{ $limit }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "vllm-common.validateVolumes" -}}
{{- $cache := .role.cache -}}
{{- $pods := mul .role.parallelism.nodes (ternary .role.replicas .role.autoscaling.maxReplicas (eq .role.autoscaling.type "none")) -}}
{{- $surge := and (eq .role.rollout.strategy "RollingUpdate") (not (has (toString .role.rollout.maxSurge) (list "0" "0%"))) -}}
{{- if and (eq $cache.type "pvc") (ne $cache.accessMode "ReadWriteMany") (or (gt $pods 1) $surge) }}
{{ .at }}cache.accessMode: {{ $cache.accessMode }} serves one {{ ternary "node" "pod" (eq $cache.accessMode "ReadWriteOnce") }}, but {{ if gt $pods 1 }}{{ $pods }} pods{{ else }}a rollout with maxSurge {{ .role.rollout.maxSurge }}{{ end }} would share the claim; set ReadWriteMany, or {{ .at }}cache.type to ephemeral
{{- end }}
{{- range .role.extraVolumes -}}
{{- if has .name (list "scratch" "cache" "shm" "model" "tls" "kv-store") }}
{{ $.at }}extraVolumes: the name {{ .name }} belongs to a volume of the chart; choose another
{{- end }}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateRollout" -}}
{{- $rollout := .role.rollout -}}
{{- $none := list "0" "0%" -}}
{{- if and (eq .role.workload "leaderWorkerSet") (ne $rollout.strategy "RollingUpdate") }}
{{ .at }}rollout.strategy: {{ $rollout.strategy }}, but a LeaderWorkerSet can only roll; set RollingUpdate
{{- end }}
{{- if and (eq $rollout.strategy "RollingUpdate") (has (toString $rollout.maxSurge) $none) (has (toString $rollout.maxUnavailable) $none) }}
{{ .at }}rollout: maxSurge and maxUnavailable are both 0, so no pod could ever be replaced; set one of them
{{- end }}
{{- end }}

{{- define "vllm-common.validateAutoscaling" -}}
{{- $scaling := .role.autoscaling -}}
{{- if ne $scaling.type "none" -}}
{{- if gt (int64 $scaling.minReplicas) (int64 $scaling.maxReplicas) }}
{{ .at }}autoscaling.minReplicas: {{ int64 $scaling.minReplicas }} is more than maxReplicas {{ int64 $scaling.maxReplicas }}
{{- end }}
{{- if and (eq $scaling.type "hpa") (eq (int64 $scaling.minReplicas) 0) }}
{{ .at }}autoscaling.minReplicas: 0 is for keda only; set 1 or more, or {{ .at }}autoscaling.type to keda
{{- end }}
{{- end -}}
{{- end }}
