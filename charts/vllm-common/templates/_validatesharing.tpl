{{/* What cannot be of a shared GPU, one message a line. Parameters: the role context and `at`, the role's values path. */}}

{{- define "vllm-common.validateSharing" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- $places := include "vllm-common.hamiPlaces" . -}}
{{- include "vllm-common.validateSharingAtAll" . -}}
{{- if eq $places "slice" }}{{ include "vllm-common.validateSlice" . }}{{ end -}}
{{- if has $places (list "slice" "card") }}{{ include "vllm-common.validateHamiPod" . }}{{ end -}}
{{- if has $mode (list "mig" "hami-mig" "dra") }}{{ include "vllm-common.validateMig" . }}{{ end -}}
{{- if include "vllm-common.divided" . }}{{ include "vllm-common.validateDivided" . }}{{ end -}}
{{- if include "vllm-common.claimKind" . }}{{ include "vllm-common.validateClaim" . }}{{ end -}}
{{- if and (has $mode (list "hami" "hami-dra")) .kv (ne .root.Values.global.vllm.kvTransfer.connector "p2pNccl") (not .root.Values.global.vllm.hami.acceptUnverifiedTransfer) }}
global.vllm.hami.acceptUnverifiedTransfer: false, and nobody has published a test of KV transfer to a slice of HAMi on hardware (HAMi issue 1423). Safer are {{ .at }}sharing.mode mig, and fewer replicas with larger batches on whole GPUs (mode none); set true to try it all the same
{{- end }}
{{- if and (eq $places "never") (not .role.scheduling.nodeSelector) (not .role.scheduling.affinity) }}
{{ .at }}sharing.exclusive: false, so HAMi leaves the pods alone, but nothing keeps them off its nodes, where its device plugin would refuse them; set {{ .at }}scheduling.nodeSelector to nodes without it
{{- end }}
{{- end }}

{{- define "vllm-common.validateSharingAtAll" -}}
{{- $sharing := .role.sharing -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $cards := (include "vllm-common.sharingFacts" . | fromJson).cards -}}
{{- $place := printf "%ssharing" .at -}}
{{- if and (ne $sharing.mode "none") (ne $vllm.accelerator "nvidia") }}
{{ $place }}.mode: {{ $sharing.mode }} is for GPUs of NVIDIA, and global.vllm.accelerator is {{ $vllm.accelerator }}; set none
{{- else if ne $sharing.mode "none" -}}
{{- if and $sharing.gpu (not (hasKey $cards $sharing.gpu)) }}
{{ $place }}.gpu: the catalogue has no memory of {{ $sharing.gpu }}; set one of {{ keys $cards | sortAlpha | join ", " }}, or leave it empty and give {{ $place }}.memoryMiB or migProfile
{{- end }}
{{- if and .kv (eq $vllm.kvTransfer.connector "p2pNccl") }}
global.vllm.kvTransfer.connector: p2pNccl keeps its buffers beside what --gpu-memory-utilization counts, and NCCL fails in slices and between MIG instances; set nixl, or {{ $place }}.mode to none
{{- end }}
{{- if gt (include "vllm-common.podRanks" . | int64) (mul .role.parallelism.tensor .role.parallelism.pipeline | int64) }}
{{ .at }}parallelism.data: {{ int64 .role.parallelism.data }} ranks in one pod would count each other's memory in a shared GPU (HAMi-core issue 191); set 1, and more {{ .at }}replicas
{{- end }}
{{- end }}
{{- if and $vllm.hami.enabled (semverCompare (printf "<%s" (first (include "vllm-common.sharingFacts" . | fromJson).hami.releases)) $vllm.hami.version) }}
global.vllm.hami.version: {{ $vllm.hami.version }} is older than {{ first (include "vllm-common.sharingFacts" . | fromJson).hami.releases }}, the first release of HAMi that these charts know
{{- end }}
{{- end }}

{{/* A slice by HAMi's scheduler: memory, compute and tensor parallelism. */}}
{{- define "vllm-common.validateSlice" -}}
{{- $sharing := .role.sharing -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $hami := $vllm.hami -}}
{{- $place := printf "%ssharing" .at -}}
{{- $slice := include "vllm-common.sliceMiB" . | int64 -}}
{{- $replicas := int64 $sharing.replicasPerGpu -}}
{{- $tensor := int64 .role.parallelism.tensor -}}
{{- if not $hami.enabled }}
{{ $place }}.mode: {{ $sharing.mode }}, but global.vllm.hami.enabled is false, so other engines of the release could enter the same cards; set it to true
{{- end }}
{{- if and (eq $sharing.mode "hami") (eq $slice 0) }}
{{ $place }}.memoryMiB: 0, and without {{ $place }}.gpu it cannot be derived; HAMi would give the whole card. Set either
{{- end }}
{{- with include "vllm-common.card" . | fromJson -}}
{{- $memory := int64 .memory -}}
{{- if gt (mul $slice $replicas | int64) $memory }}
{{ $place }}.memoryMiB: {{ $replicas }} slices of {{ $slice }} MiB are more than the {{ $memory }} MiB of {{ $sharing.gpu }}; set {{ div (mul $memory 98) (mul 100 $replicas) }} or less
{{- else if and (eq $sharing.mode "hami") (le (mul $slice (add $replicas 1) | int64) $memory) (eq (int64 $sharing.cores) 0) }}
{{ $place }}.memoryMiB: of {{ $slice }} MiB a card of {{ $memory }} holds {{ div $memory $slice }} slices, not {{ $replicas }}, because memory alone decides; set more than {{ div $memory (add $replicas 1) }}, or a larger {{ $place }}.replicasPerGpu
{{- end }}
{{- end -}}
{{- if and (gt (int64 $sharing.cores) 0) (gt $tensor 1) }}
{{ $place }}.cores: {{ int64 $sharing.cores }} with tensor parallelism gets stuck in HAMi's limit (HAMi-core issue 142); set 0
{{- else if gt (mul $sharing.cores $replicas | int64) 100 }}
{{ $place }}.cores: {{ $replicas }} times {{ int64 $sharing.cores }} is more than a card; set {{ div 100 $replicas }} or less
{{- end }}
{{- if and $sharing.throttle (eq (int64 $sharing.cores) 0) }}
{{ $place }}.throttle: true, but {{ $place }}.cores is 0, so there is nothing to hold the slice to; set cores, or false
{{- end }}
{{- if gt $tensor 1 -}}
{{- if include "vllm-common.hamiBefore" (dict "root" .root "thing" "tensorParallel") }}
{{ .at }}parallelism.tensor: {{ $tensor }}, but in slices of HAMi {{ $hami.version }} NCCL crashes (HAMi issue 1764); set 1, or global.vllm.hami.version to 2.9.0 or newer
{{- else if and (semverCompare ">=0.25.0" (include "vllm-common.version" .)) (include "vllm-common.hamiBefore" (dict "root" .root "thing" "newTensorParallel")) }}
{{ .at }}parallelism.tensor: {{ $tensor }}, but vLLM {{ $vllm.version }} hangs at its start in slices of HAMi {{ $hami.version }} (HAMi-core issue 261); set 1, or global.vllm.hami.version to 2.10.0 or newer
{{- end }}
{{- end -}}
{{- if and (eq $sharing.mode "hami-mig") (include "vllm-common.hamiBefore" (dict "root" .root "thing" "migByMemory")) }}
{{ $place }}.mode: HAMi {{ $hami.version }} does not choose MIG profiles by memory (2.10.0 does); set mig or hami, or a newer global.vllm.hami.version
{{- end }}
{{- range $place, $args := dict "global.vllm.args" $vllm.args (printf "%sargs" .at) .role.args -}}
{{- range $flag, $value := $args -}}
{{- if and (eq ($flag | replace "_" "-") "enable-sleep-mode") $value (include "vllm-common.hamiBefore" (dict "root" $.root "thing" "virtualMemory")) }}
{{ $place }}.{{ $flag }}: HAMi {{ $hami.version }} does not count memory that is allocated this way (2.9.0 does); take it out
{{- end }}
{{- end -}}
{{- end -}}
{{- range $place, $env := dict "global.vllm.env" $vllm.env (printf "%senv" .at) .role.env -}}
{{- range $name := list "CUDA_DISABLE_CONTROL" "LD_PRELOAD" -}}
{{- if hasKey $env $name }}
{{ $place }}.{{ $name }}: it switches off what keeps a slice of HAMi to its memory; take it out
{{- end }}
{{- end -}}
{{- end -}}
{{- $policy := index .role.annotations "hami.io/gpu-scheduler-policy" | default "binpack" -}}
{{- if and (gt $replicas 1) (not (contains "binpack" $policy)) }}
{{ .at }}annotations.hami.io/gpu-scheduler-policy: {{ $policy }} gives each slice a card of its own while there are idle ones; take it out, or set binpack
{{- end }}
{{- $surge := toString .role.rollout.maxSurge -}}
{{- if and (eq .role.rollout.strategy "RollingUpdate") (not (has $surge (list "0" "0%" "1"))) }}
{{ .at }}rollout.maxSurge: {{ $surge }}, but HAMi binds one pod of a node after the other, and those that wait fail; set 0 or 1
{{- end }}
{{- end }}

{{/* What HAMi refuses or does not see in any pod that it places. */}}
{{- define "vllm-common.validateHamiPod" -}}
{{- $role := .role -}}
{{- $scheduler := include "vllm-common.hamiScheduler" . -}}
{{- with $role.scheduling.schedulerName -}}
{{- if ne . $scheduler }}
{{ $.at }}scheduling.schedulerName: {{ . }}, but only {{ $scheduler }} knows what is free on a card; leave it empty, or set global.vllm.hami.schedulerName
{{- end }}
{{- end -}}
{{- if hasKey $role.extraPodSpec "nodeName" }}
{{ .at }}extraPodSpec.nodeName: HAMi refuses pods that are bound already; use {{ .at }}scheduling.nodeSelector
{{- end }}
{{- $facts := include "vllm-common.sharingFacts" . | fromJson -}}
{{- range $name, $count := $role.resources.extended -}}
{{- if has $name (list "nvidia.com/gpu" "nvidia.com/gpumem" "nvidia.com/gpumem-percentage" "nvidia.com/gpucores" "nvidia.com/priority") }}
{{ $.at }}resources.extended.{{ $name }}: {{ if eq $name "nvidia.com/priority" }}engines of low priority stand still while another computes{{ else }}what HAMi gives is derived from {{ $.at }}sharing{{ end }}; take it out
{{- end }}
{{- end -}}
{{- range $mount := $role.extraVolumeMounts -}}
{{- range $path := $facts.hami.hookPaths -}}
{{- if or (eq $mount.mountPath $path) (hasPrefix (printf "%s/" $mount.mountPath) $path) }}
{{ $.at }}extraVolumeMounts: {{ $mount.mountPath }} would hide {{ $path }}, where HAMi mounts its library; choose another path
{{- end }}
{{- end -}}
{{- end -}}
{{- $containers := dict "extraContainerSpec" (list $role.extraContainerSpec) "extraContainers" $role.extraContainers "extraInitContainers" $role.extraInitContainers -}}
{{- range $key, $list := $containers -}}
{{- range $container := $list -}}
{{- if dig "securityContext" "privileged" false $container }}
{{ $.at }}{{ $key }}: HAMi refuses pods with a privileged container; take securityContext.privileged out (RDMA needs the capability IPC_LOCK and an rdma resource only)
{{- end }}
{{- range $name, $amount := merge (dict) (dig "resources" "limits" (dict) $container) (dig "resources" "requests" (dict) $container) -}}
{{- if and (hasPrefix "nvidia.com/" $name) (ne $key "extraContainerSpec") }}
{{ $.at }}{{ $key }}: {{ $name }} beside the engine would be counted as another slice; take it out
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "vllm-common.validateMig" -}}
{{- $sharing := .role.sharing -}}
{{- $place := printf "%ssharing" .at -}}
{{- $profile := include "vllm-common.migProfile" . -}}
{{- $known := (include "vllm-common.card" . | fromJson).mig | default dict -}}
{{- $ofMig := not (and (eq $sharing.mode "dra") (ne $sharing.claim "mig")) -}}
{{- if not $ofMig -}}
{{- else if and $sharing.migProfile $sharing.gpu (not (hasKey $known $sharing.migProfile)) }}
{{ $place }}.migProfile: {{ $sharing.gpu }} has no {{ $sharing.migProfile }}; set {{ if $known }}one of {{ keys $known | sortAlpha | join ", " }}{{ else }}another mode, since this card has no MIG{{ end }}
{{- else if and $sharing.migProfile $known (lt (index $known $sharing.migProfile | int64) (int64 $sharing.replicasPerGpu)) }}
{{ $place }}.replicasPerGpu: {{ int64 $sharing.replicasPerGpu }}, but {{ $sharing.gpu }} holds {{ index $known $sharing.migProfile | int64 }} of {{ $sharing.migProfile }}; set that, or a smaller migProfile
{{- else if not (or $profile (and (eq $sharing.mode "hami-mig") (gt (int64 $sharing.memoryMiB) 0))) }}
{{ $place }}.migProfile: empty, and {{ if $known }}{{ $sharing.gpu }} has no single profile for {{ int64 $sharing.replicasPerGpu }} replicas{{ else if $sharing.gpu }}{{ $sharing.gpu }} has no MIG{{ else }}without {{ $place }}.gpu it cannot be derived{{ end }}; set it
{{- end }}
{{- if and $ofMig (gt (include "vllm-common.podRanks" . | int64) 1) }}
{{ .at }}parallelism: {{ include "vllm-common.podRanks" . }} ranks, but MIG instances cannot speak to each other; set tensor, pipeline and data to 1
{{- end }}
{{- if and (eq $sharing.mode "mig") (eq $sharing.migStrategy "single") .root.Values.global.vllm.hami.enabled }}
{{ $place }}.migStrategy: single asks for nvidia.com/gpu, which HAMi takes for its own; set mixed, or mode hami-mig
{{- end }}
{{- end }}

{{/* Engines on one card without walls between them. */}}
{{- define "vllm-common.validateDivided" -}}
{{- $sharing := .role.sharing -}}
{{- if eq (int64 $sharing.kvCacheMiB) 0 }}
{{ .at }}sharing.kvCacheMiB: 0, but engines that start together on a card measure each other's memory (vLLM issue 55827); set the size of each one's KV cache
{{- end }}
{{- with include "vllm-common.card" . | fromJson -}}
{{- if ge (mul $sharing.kvCacheMiB $sharing.replicasPerGpu | int64) (int64 .memory) }}
{{ $.at }}sharing.kvCacheMiB: {{ int64 $sharing.replicasPerGpu }} times {{ int64 $sharing.kvCacheMiB }} MiB leave nothing of the {{ int64 .memory }} MiB of {{ $sharing.gpu }} to the weights; set less
{{- end }}
{{- end -}}
{{- if gt (include "vllm-common.podRanks" . | int64) 1 }}
{{ .at }}parallelism: {{ include "vllm-common.podRanks" . }} ranks, but {{ if include "vllm-common.overMps" . }}MPS gives one card at most{{ else }}two shares may be of the same card{{ end }}; set tensor, pipeline and data to 1
{{- end }}
{{- if and (include "vllm-common.overMps" .) (eq .role.shm.mode "always") }}
{{ .at }}shm.mode: always, but MPS speaks to its clients through a /dev/shm of its own; set auto
{{- end }}
{{- end }}

{{- define "vllm-common.validateClaim" -}}
{{- $sharing := .role.sharing -}}
{{- $since := (include "vllm-common.sharingFacts" . | fromJson).draSince -}}
{{- $floor := ternary $since.consumableCapacity $since.structuredParameters (eq $sharing.mode "hami-dra") -}}
{{- if semverCompare (printf "<%s.0-0" $floor) .root.Capabilities.KubeVersion.Version }}
{{ .at }}sharing.mode: {{ $sharing.mode }} needs Kubernetes {{ $floor }}, and this is {{ .root.Capabilities.KubeVersion.Version }}; set {{ ternary "hami" "mig, time-slicing or mps" (eq $sharing.mode "hami-dra") }}
{{- end }}
{{- if and (eq $sharing.mode "hami-dra") .root.Values.global.vllm.hami.enabled }}
global.vllm.hami.enabled: true is for HAMi's scheduler, which may not run beside its DRA driver; set false for {{ .at }}sharing.mode hami-dra
{{- end }}
{{- if and (eq $sharing.mode "hami-dra") (eq (include "vllm-common.sliceMiB" .) "0") }}
{{ .at }}sharing.memoryMiB: 0, and without {{ .at }}sharing.gpu it cannot be derived; the claim would take the whole card. Set either
{{- end }}
{{- $scaling := .role.autoscaling -}}
{{- $pods := ternary .role.replicas $scaling.maxReplicas (eq $scaling.type "none") -}}
{{- if and (include "vllm-common.divided" .) (gt (int64 $pods) (int64 $sharing.replicasPerGpu)) }}
{{ .at }}replicas: {{ int64 $pods }} pods share the one card of their claim, but {{ .at }}sharing.replicasPerGpu is {{ int64 $sharing.replicasPerGpu }}; set as many at most, or {{ .at }}sharing.claim to mig
{{- end }}
{{- end }}
