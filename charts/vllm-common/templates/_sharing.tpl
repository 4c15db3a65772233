{{/*
How an engine shares its GPU with others (schemas/sharing.yaml). Of a role without GPUs, or of a pod that is no engine,
nothing below renders anything.
*/}}

{{/*
vllm-common.sharingMode: how the role's pods share a GPU; none where they have it alone, or have none.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingMode" -}}
{{- if not .role.sharing -}}
none
{{- else if eq (include "vllm-common.gpus" .) "0" -}}
none
{{- else -}}
{{- .role.sharing.mode -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.divided: "true" where neither memory nor start of one engine on a GPU is kept from the other, so that
each must be told its part; else nothing.
Parameters: the role context.
*/}}
{{- define "vllm-common.divided" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- if or (has $mode (list "time-slicing" "mps")) (and (eq $mode "dra") (ne .role.sharing.claim "mig")) }}true{{ end -}}
{{- end }}

{{/*
vllm-common.overMps: "true" where NVIDIA's MPS lies between engine and GPU, else nothing.
Parameters: the role context.
*/}}
{{- define "vllm-common.overMps" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- if or (eq $mode "mps") (and (eq $mode "dra") (eq .role.sharing.claim "mps")) }}true{{ end -}}
{{- end }}

{{/*
vllm-common.hamiPlaces: whether HAMi's scheduler places the role's pods: `slice`, a part of a card each; `card`, whole
cards that nobody else gets; `never`, though it manages the cluster; else nothing.
Parameters: the role context.
*/}}
{{- define "vllm-common.hamiPlaces" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- if not .role.sharing -}}
{{- else if has (include "vllm-common.sharingMode" .) (list "hami" "hami-mig") -}}
slice
{{- else if ne (include "vllm-common.sharingMode" .) "none" -}}
{{- else if and $vllm.hami.enabled (eq $vllm.accelerator "nvidia") (ne (include "vllm-common.gpus" .) "0") -}}
{{- ternary "card" "never" .role.sharing.exclusive -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.hamiScheduler: name of HAMi's scheduler.
Parameters: root.
*/}}
{{- define "vllm-common.hamiScheduler" -}}
{{- .root.Values.global.vllm.hami.schedulerName | default (include "vllm-common.sharingFacts" . | fromJson).hami.scheduler -}}
{{- end }}

{{/*
vllm-common.hamiBefore: "true" when the cluster's HAMi is older than the first release with which something works.
Parameters: root; thing, a key of hami.since in vllm-common.sharingFacts.
*/}}
{{- define "vllm-common.hamiBefore" -}}
{{- $since := index (include "vllm-common.sharingFacts" . | fromJson).hami.since .thing -}}
{{- if semverCompare (printf "<%s" $since) .root.Values.global.vllm.hami.version }}true{{ end -}}
{{- end }}

{{/*
vllm-common.card: facts of the role's GPU, as JSON: memory in MiB, and mig; empty where no GPU is named, or one that is
not known.
Parameters: the role context.
*/}}
{{- define "vllm-common.card" -}}
{{- index (include "vllm-common.sharingFacts" . | fromJson).cards .role.sharing.gpu | default dict | toJson -}}
{{- end }}

{{/*
vllm-common.migProfile: the MIG profile of the role's pods: the given one, else the largest of which the card holds
`replicasPerGpu`; nothing where there is none, or two of the same size.
Parameters: the role context.
*/}}
{{- define "vllm-common.migProfile" -}}
{{- $sharing := .role.sharing -}}
{{- $most := 0 -}}
{{- $largest := 0 -}}
{{- $found := list -}}
{{- range $profile, $held := (include "vllm-common.card" . | fromJson).mig | default dict -}}
{{- $slices := regexFind "^[0-9]+" $profile | int -}}
{{- $count := int $held -}}
{{- $same := and (eq $count $most) (eq $slices $largest) -}}
{{- if lt $count (int $sharing.replicasPerGpu) -}}
{{- else if $same -}}
{{- $found = append $found $profile -}}
{{- else if or (eq $most 0) (lt $count $most) (and (eq $count $most) (gt $slices $largest)) -}}
{{- $most = $count -}}
{{- $largest = $slices -}}
{{- $found = list $profile -}}
{{- end -}}
{{- end -}}
{{- $sharing.migProfile | default (ternary (first $found) "" (eq (len $found) 1)) -}}
{{- end }}

{{/*
vllm-common.sliceMiB: memory of one slice of a card, in MiB: the given one, else derived; 0 where it cannot be. Of a card
2 % stay with the driver, which its own count includes. A MIG instance has a little less than its name says, and HAMi
takes the smallest profile that holds what is asked for.
Parameters: the role context.
*/}}
{{- define "vllm-common.sliceMiB" -}}
{{- $sharing := .role.sharing -}}
{{- $derived := div (mul ((include "vllm-common.card" . | fromJson).memory | default 0 | int64) 98) (mul 100 $sharing.replicasPerGpu) -}}
{{- if eq $sharing.mode "hami-mig" }}{{ $derived = div (mul (include "vllm-common.migProfile" . | regexFind "[0-9]+gb" | trimSuffix "gb" | int64) 1024 93) 100 }}{{ end -}}
{{- $sharing.memoryMiB | default $derived | int64 -}}
{{- end }}

{{/*
vllm-common.gpuRequest: the extended resources by which one pod gets its GPUs, as a JSON map; empty for claims.
Parameters: the role context.
*/}}
{{- define "vllm-common.gpuRequest" -}}
{{- $sharing := .role.sharing -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- $name := include "vllm-common.gpuResource" . -}}
{{- $shared := .role.resources.gpuResource | default "nvidia.com/gpu.shared" -}}
{{- $amounts := dict -}}
{{- if has $mode (list "hami" "hami-mig") -}}
{{- $amounts = dict "nvidia.com/gpumem" (include "vllm-common.sliceMiB" .) -}}
{{- if gt (int64 $sharing.cores) 0 }}{{ $_ := set $amounts "nvidia.com/gpucores" (int64 $sharing.cores | toString) }}{{ end -}}
{{- else if eq (include "vllm-common.hamiPlaces" .) "card" -}}
{{- $amounts = dict "nvidia.com/gpucores" "100" -}}
{{- else if and (eq $mode "mig") (eq $sharing.migStrategy "mixed") -}}
{{- $name = printf "nvidia.com/mig-%s" (include "vllm-common.migProfile" .) -}}
{{- else if has $mode (list "time-slicing" "mps") -}}
{{- $name = $shared -}}
{{- end -}}
{{- if not (or (has $mode (list "dra" "hami-dra")) (eq (include "vllm-common.gpus" .) "0")) }}{{ $_ := set $amounts $name (include "vllm-common.gpus" .) }}{{ end -}}
{{- toJson $amounts -}}
{{- end }}

{{/*
vllm-common.sharingLabels, vllm-common.sharingAnnotations, vllm-common.sharingNodes: what sharing adds to labels and
annotations of the pods, and to the labels that their node must have, as JSON maps. By itself HAMi would give each slice a
card of its own. `vllm-phases node-config` reads how many a card is meant to hold.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingLabels" -}}
{{- ternary (dict "hami.io/webhook" "ignore") dict (eq (include "vllm-common.hamiPlaces" .) "never") | toJson -}}
{{- end }}

{{- define "vllm-common.sharingAnnotations" -}}
{{- $annotations := dict -}}
{{- if ne (include "vllm-common.sharingMode" .) "none" }}{{ $_ := set $annotations "vllm-phases.dev/replicas-per-gpu" (int64 .role.sharing.replicasPerGpu | toString) }}{{ end -}}
{{- if eq (include "vllm-common.hamiPlaces" .) "slice" -}}
{{- range $of := list "gpu" "node" }}{{ $_ := set $annotations (printf "hami.io/%s-scheduler-policy" $of) "binpack" }}{{ end -}}
{{- if eq .role.sharing.mode "hami-mig" }}{{ $_ := set $annotations "nvidia.com/vgpu-mode" "mig" }}{{ end -}}
{{- end -}}
{{- toJson $annotations -}}
{{- end }}

{{- define "vllm-common.sharingNodes" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- $nodes := dict -}}
{{- if and (eq $mode "mig") (eq .role.sharing.migStrategy "single") -}}
{{- $nodes = dict "nvidia.com/mig.strategy" "single" "nvidia.com/mig.config" (printf "all-%s" (include "vllm-common.migProfile" .)) -}}
{{- else if eq $mode "time-slicing" -}}
{{- $nodes = dict "nvidia.com/gpu.sharing-strategy" "time-slicing" -}}
{{- else if eq $mode "mps" -}}
{{- $nodes = dict "nvidia.com/mps.capable" "true" -}}
{{- end -}}
{{- toJson $nodes -}}
{{- end }}

{{/*
vllm-common.sharingArgs: flags that follow from sharing and that the user may set otherwise, as a JSON map. The engine's
own batch limits fall to a quarter where it sees less than 70 GiB. Peer access between slices is blocked.
Parameters: the role context; free, the user's flags.
*/}}
{{- define "vllm-common.sharingArgs" -}}
{{- $args := dict -}}
{{- if ne (include "vllm-common.sharingMode" .) "none" -}}
{{- $args = dict "max-num-seqs" 256 "max-num-batched-tokens" 8192 -}}
{{- if gt (int64 .role.parallelism.tensor) 1 }}{{ $_ := set $args "disable-custom-all-reduce" true }}{{ end -}}
{{- range $flag, $value := .free }}{{ $args = omit $args ($flag | replace "_" "-") }}{{ end -}}
{{- end -}}
{{- toJson $args -}}
{{- end }}

{{/*
vllm-common.sharingFlags: flags that sharing decides, as a JSON map. Engines that start together on one card measure
each other's memory, so the KV cache has a fixed size; the fraction is what must be free at the start.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingFlags" -}}
{{- $flags := dict -}}
{{- if include "vllm-common.divided" . -}}
{{- $_ := set $flags "gpu-memory-utilization" (divf (floor (divf 900 .role.sharing.replicasPerGpu)) 1000) -}}
{{- $_ := set $flags "kv-cache-memory-bytes" (mul .role.sharing.kvCacheMiB 1048576) -}}
{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{/*
vllm-common.sharingOwners: flags of vllm-common.sharingFlags with the value that renders each, as JSON.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingOwners" -}}
{{- if include "vllm-common.divided" . -}}
{{- dict "gpu-memory-utilization" "role:sharing.replicasPerGpu" "kv-cache-memory-bytes" "role:sharing.kvCacheMiB" | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end }}

{{/*
vllm-common.sharingEnvironment: variables of sharing, as a JSON map. With the policy `disable` cores of a slice count for
the scheduler and slow nobody down. NCCL's host memory by CUDA's virtual addresses hangs in slices.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingEnvironment" -}}
{{- $env := dict -}}
{{- if has (include "vllm-common.sharingMode" .) (list "hami" "hami-dra") -}}
{{- if and (gt (int64 .role.sharing.cores) 0) (not .role.sharing.throttle) }}{{ $_ := set $env "GPU_CORE_UTILIZATION_POLICY" "disable" }}{{ end -}}
{{- if gt (int64 .role.parallelism.tensor) 1 }}{{ $_ := set $env "NCCL_CUMEM_HOST_ENABLE" "0" }}{{ end -}}
{{- end -}}
{{- toJson $env -}}
{{- end }}

{{/*
vllm-common.claimKind: the object by which pods of modes dra and hami-dra get their GPU: a ResourceClaimTemplate, of which
each pod gets a device of its own, or one ResourceClaim that all share; nothing in other modes.
Parameters: the role context.
*/}}
{{- define "vllm-common.claimKind" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- if has $mode (list "dra" "hami-dra") -}}
{{- ternary "ResourceClaim" "ResourceClaimTemplate" (ne (include "vllm-common.divided" .) "") -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.deviceClaim: the specification of a claim of devices.
Parameters: the role context.
*/}}
{{- define "vllm-common.deviceClaim" -}}
{{- $sharing := .role.sharing -}}
{{- $of := ternary "hami" $sharing.claim (eq $sharing.mode "hami-dra") -}}
{{- $class := index (dict "hami" "hami-core-gpu.project-hami.io" "mig" "mig.nvidia.com" "timeSlicing" "gpu.nvidia.com" "mps" "gpu.nvidia.com") $of -}}
{{- $request := dict "deviceClassName" $class "allocationMode" "ExactCount" "count" (include "vllm-common.gpus" . | int64) -}}
{{- if eq $of "hami" -}}
{{- $_ := set $request "capacity" (dict "requests" (dict "memory" (printf "%sMi" (include "vllm-common.sliceMiB" .)) "cores" (int64 $sharing.cores | toString))) -}}
{{- else if eq $of "mig" -}}
{{- $_ := set $request "selectors" (list (dict "cel" (dict "expression" (printf "device.attributes['gpu.nvidia.com'].profile == '%s'" (include "vllm-common.migProfile" .))))) -}}
{{- end -}}
devices:
  requests:
    - name: gpu
      exactly:
        {{- toYaml $request | nindent 8 }}
  {{- if include "vllm-common.divided" . }}
  config:
    - requests: [gpu]
      opaque:
        driver: gpu.nvidia.com
        parameters:
          apiVersion: resource.nvidia.com/v1beta1
          kind: GpuConfig
          sharing:
            {{- if eq $of "mps" }}
            strategy: MPS
            mpsConfig:
              defaultActiveThreadPercentage: {{ div 100 $sharing.replicasPerGpu }}
              {{- with include "vllm-common.sliceMiB" . }}
              {{- if ne . "0" }}
              defaultPinnedDeviceMemoryLimit: {{ . }}Mi
              {{- end }}
              {{- end }}
            {{- else }}
            strategy: TimeSlicing
            timeSlicingConfig:
              interval: Default
            {{- end }}
  {{- end }}
{{- end }}

{{/*
vllm-common.resourceClaim: the ResourceClaim, or the ResourceClaimTemplate, of a role.
Parameters: the role context.
*/}}
{{- define "vllm-common.resourceClaim" -}}
{{- with include "vllm-common.claimKind" . -}}
apiVersion: resource.k8s.io/v1
kind: {{ . }}
metadata:
  {{- include "vllm-common.metadata" $ | nindent 2 }}
spec:
  {{- if eq . "ResourceClaim" }}
  {{- include "vllm-common.deviceClaim" $ | nindent 2 }}
  {{- else }}
  spec:
    {{- include "vllm-common.deviceClaim" $ | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end }}

{{/*
vllm-common.sharingNotes: what whoever installs shared engines must know.
Parameters: the role context.
*/}}
{{- define "vllm-common.sharingNotes" -}}
{{- $mode := include "vllm-common.sharingMode" . -}}
{{- if and (has $mode (list "hami" "hami-dra")) .root.Values.global.vllm.hami.acceptUnverifiedTransfer }}

Note: KV transfer to slices of HAMi is unverified on hardware (HAMi issue 1423, open). Look at the transfer counters of
`helm test`. Two ways are safer: MIG instances (sharing.mode mig), and fewer decode replicas with larger batches on whole
GPUs (sharing.mode none).
{{- end }}
{{- if and (has $mode (list "hami" "hami-dra")) (gt (int64 .role.parallelism.tensor) 1) }}

Note: tensor parallelism over slices has hung with several releases of HAMi and vLLM; docs/hami.md lists them.
{{- end }}
{{- if has $mode (list "time-slicing" "mps") }}

Note: unless its policy is `packed`, the device plugin gives each engine a card of its own while there are idle ones.
`vllm-phases node-config` prints its configuration. Nothing but these values keeps the engines of a card apart.
{{- end }}
{{- end }}
