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
{{- range $topic := list "Version" "Flags" "Environment" "Source" "Security" "Resources" "Volumes" "Rollout" "Autoscaling" "KvTransfer" -}}
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
{{- $owned := include "vllm-common.ownedFlags" . | fromYaml -}}
{{- range $place, $args := dict "global.vllm.args" .root.Values.global.vllm.args (printf "%sargs" .at) .role.args -}}
{{- range $flag, $value := $args -}}
{{- $plain := $flag | replace "_" "-" | regexFind "^[^.]+" | trimPrefix "no-" -}}
{{- with index $owned $plain }}
{{ $place }}.{{ $flag }}: set {{ . | replace "role:" $.at }} instead, which renders this flag
{{- end }}
{{- end -}}
{{- end -}}
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
{{- $pods := int64 (ternary .role.replicas .role.autoscaling.maxReplicas (eq .role.autoscaling.type "none")) -}}
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
