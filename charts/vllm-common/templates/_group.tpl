{{/*
A replica of the workload leaderWorkerSet is a group of pods. Where its pods differ, the first has the API server, and
the others speak of themselves by one more key in their role context:
  member  component of a pod that takes no requests; absent for every other pod
*/}}

{{/*
vllm-common.localData: data-parallel ranks in one pod.
Parameters: the role context.
*/}}
{{- define "vllm-common.localData" -}}
{{- max 1 (div .role.parallelism.data .role.parallelism.nodes) -}}
{{- end }}

{{/*
vllm-common.podRanks: ranks of every kind in one pod, each of which takes a GPU.
Parameters: the role context.
*/}}
{{- define "vllm-common.podRanks" -}}
{{- div (mul .role.parallelism.tensor .role.parallelism.pipeline .role.parallelism.data) .role.parallelism.nodes -}}
{{- end }}

{{/*
vllm-common.servers: HTTP servers in one pod, each with a port of its own.
Parameters: the role context.
*/}}
{{- define "vllm-common.servers" -}}
{{- if eq .role.parallelism.loadBalancing "external" }}{{ include "vllm-common.localData" . }}{{ else }}1{{ end -}}
{{- end }}

{{/*
vllm-common.portRange: ports in a row with a name each, as a JSON list of name and number.
Parameters: name, of the first; first, count.
*/}}
{{- define "vllm-common.portRange" -}}
{{- $ports := list -}}
{{- range $index := until (int .count) -}}
{{- $ports = append $ports (dict "name" (ternary $.name (printf "%s-%d" $.name $index) (eq $index 0)) "number" (add $.first $index)) -}}
{{- end -}}
{{- toJson $ports -}}
{{- end }}

{{/*
vllm-common.httpPorts: ports of the HTTP servers in one pod, as a JSON list of name and number.
Parameters: the role context.
*/}}
{{- define "vllm-common.httpPorts" -}}
{{- include "vllm-common.portRange" (dict "name" "http" "first" .role.port "count" (include "vllm-common.servers" .)) -}}
{{- end }}

{{/*
vllm-common.healthPort: port on which the supervisor of several servers in a pod tells whether all of them are well.
Parameters: none.
*/}}
{{- define "vllm-common.healthPort" -}}
9256
{{- end }}

{{/*
vllm-common.headless: "true" where only the first pod of a replica has an API server, else nothing.
Parameters: the role context; a role of one pod need not have parallelism.
*/}}
{{- define "vllm-common.headless" -}}
{{- $parallelism := .role.parallelism | default (dict "nodes" 1) -}}
{{- if gt (int64 $parallelism.nodes) 1 -}}
{{- if or (eq (int64 $parallelism.data) 1) (eq $parallelism.loadBalancing "internal") }}true{{ end -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.members: components of a role's pods, as a JSON list. Pods that take no requests have one of their own, so
that no Service, pool, router or monitor finds them.
Parameters: the role context.
*/}}
{{- define "vllm-common.members" -}}
{{- $members := list .component -}}
{{- if include "vllm-common.headless" . }}{{ $members = append $members (printf "%s-worker" .component) }}{{ end -}}
{{- toJson $members -}}
{{- end }}

{{/*
vllm-common.memberSelector: selects every pod of a role, whether it takes requests or not.
Parameters: the role context.
*/}}
{{- define "vllm-common.memberSelector" -}}
{{- $members := include "vllm-common.members" . | fromJsonArray -}}
{{- $labels := include "vllm-common.selectorLabels" . | fromYaml -}}
matchLabels:
  {{- ternary $labels (omit $labels "app.kubernetes.io/component") (eq (len $members) 1) | toYaml | nindent 2 }}
{{- if gt (len $members) 1 }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: {{ toJson $members }}
{{- end }}
{{- end }}

{{/*
vllm-common.groupName: name of a role's LeaderWorkerSet. Its controller adds the numbers of group and pod, and the
names of its StatefulSets with a hash must stay labels, hence 48 characters.
Parameters: the role context.
*/}}
{{- define "vllm-common.groupName" -}}
{{- $name := include "vllm-common.fullname" . -}}
{{- if le (len $name) 48 -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" ($name | trunc 39 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.workload: the object that runs a role's pods, as a reference of apiVersion, kind and name.
Parameters: the role context.
*/}}
{{- define "vllm-common.workload" -}}
{{- if eq .role.workload "leaderWorkerSet" -}}
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
name: {{ include "vllm-common.groupName" . }}
{{- else -}}
apiVersion: apps/v1
kind: Deployment
name: {{ include "vllm-common.fullname" . }}
{{- end -}}
{{- end }}

{{/*
vllm-common.leaderWorkerSet: the LeaderWorkerSet of a role. A pod that ends takes its replica with it, since the ranks
of the others would wait for it for ever. The first pod is ready only when all work, so none may wait for that. Each
replica has a Service of its own for names: the shared one would have the name of the role's Service, which does not
publish pods that are not ready.
Parameters: the role context.
*/}}
{{- define "vllm-common.leaderWorkerSet" -}}
{{- if eq .role.workload "leaderWorkerSet" -}}
{{- include "vllm-common.validate" . -}}
{{- $placement := dict -}}
{{- with .role.group.exclusiveTopology }}{{ $_ := set $placement "leaderworkerset.sigs.k8s.io/exclusive-topology" . }}{{ end -}}
{{- $reference := include "vllm-common.workload" . | fromYaml -}}
apiVersion: {{ $reference.apiVersion }}
kind: {{ $reference.kind }}
metadata:
  {{- include "vllm-common.metadata" (merge (dict "objectName" $reference.name "annotations" $placement) .) | nindent 2 }}
spec:
  {{- if eq .role.autoscaling.type "none" }}
  replicas: {{ int64 .role.replicas }}
  {{- end }}
  startupPolicy: LeaderCreated
  networkConfig:
    subdomainPolicy: UniquePerReplica
  rolloutStrategy:
    type: RollingUpdate
    rollingUpdateConfiguration:
      maxSurge: {{ include "vllm-common.scalar" .role.rollout.maxSurge }}
      maxUnavailable: {{ include "vllm-common.scalar" .role.rollout.maxUnavailable }}
  leaderWorkerTemplate:
    size: {{ int64 .role.parallelism.nodes }}
    restartPolicy: RecreateGroupOnPodRestart
    {{- if include "vllm-common.headless" . }}
    leaderTemplate:
      {{- include "vllm-common.enginePod" . | nindent 6 }}
    {{- $member := dict "member" (include "vllm-common.members" . | fromJsonArray | last) }}
    workerTemplate:
      {{- include "vllm-common.enginePod" (merge $member (omit . "own" "ownAnnotations" "sidecars" "token")) | nindent 6 }}
    {{- else }}
    workerTemplate:
      {{- include "vllm-common.enginePod" . | nindent 6 }}
    {{- end }}
{{- end }}
{{- end }}
