{{/*
vllm-common.shmSize: size of /dev/shm, or nothing where the role, or the simulator, needs none. vLLM's offloading lies in it too,
and the CPU build passes messages through it even with one rank.
Parameters: the role context.
*/}}
{{- define "vllm-common.shmSize" -}}
{{- $ranks := include "vllm-common.podRanks" . | int64 -}}
{{- $offload := int64 .root.Values.global.vllm.kvTiers.offload.gibPerPod -}}
{{- if include "vllm-common.simulated" . -}}
{{- else if or (eq .role.shm.mode "always") (and (eq .role.shm.mode "auto") (or (gt $ranks 1) (gt $offload 0) (eq .root.Values.global.vllm.accelerator "cpu"))) -}}
{{- $size := .role.shm.size | default (ternary "8Gi" "2Gi" (eq .root.Values.global.vllm.accelerator "amd")) -}}
{{- include "vllm-common.plusGiB" (dict "quantity" $size "gib" $offload) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.volumes: the pod's volumes. `scratch` holds what a process writes beside the cache: home and /tmp. The
simulator has no model, hence neither that nor its cache.
Parameters: the role context.
*/}}
{{- define "vllm-common.volumes" -}}
{{- $engine := not (include "vllm-common.simulated" .) -}}
- name: scratch
  emptyDir: {}
{{- if $engine }}
- name: cache
  {{- include "vllm-common.cacheVolume" . | nindent 2 }}
{{- end }}
{{- with include "vllm-common.shmSize" . }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ . }}
{{- end }}
{{- if $engine }}{{ include "vllm-common.modelVolume" . }}{{ end }}
{{- with include "vllm-common.tlsVolume" . }}
{{ . }}
{{- end }}
{{- if and $engine .root.Values.global.vllm.kvTiers.mooncakeStore.enabled }}
- name: kv-store
  configMap:
    name: {{ include "vllm-common.fullname" . }}-kv-store
{{- end }}
{{- with .role.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
vllm-common.cacheVolume: the source of the cache volume.
Parameters: the role context.
*/}}
{{- define "vllm-common.cacheVolume" -}}
{{- if eq .role.cache.type "pvc" -}}
persistentVolumeClaim:
  claimName: {{ include "vllm-common.cacheClaimName" . | quote }}
{{- else if eq .role.cache.type "ephemeral" -}}
ephemeral:
  volumeClaimTemplate:
    spec:
      {{- include "vllm-common.cacheClaimSpec" . | nindent 6 }}
{{- else -}}
emptyDir:
  sizeLimit: {{ .role.cache.size }}
{{- end }}
{{- end }}

{{/*
vllm-common.cacheClaimSpec: what the chart asks of the storage class.
Parameters: the role context.
*/}}
{{- define "vllm-common.cacheClaimSpec" -}}
accessModes: [{{ .role.cache.accessMode }}]
{{- with .role.cache.storageClassName }}
storageClassName: {{ . | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .role.cache.size }}
{{- end }}

{{/*
vllm-common.volumeMounts: the engine container's mounts.
Parameters: the role context.
*/}}
{{- define "vllm-common.volumeMounts" -}}
{{- $engine := not (include "vllm-common.simulated" .) -}}
- name: scratch
  mountPath: /home/vllm
  subPath: home
- name: scratch
  mountPath: /tmp
  subPath: tmp
{{- if $engine }}
- name: cache
  mountPath: {{ .role.cache.mountPath | quote }}
{{- end }}
{{- if include "vllm-common.shmSize" . }}
- name: shm
  mountPath: /dev/shm
{{- end }}
{{- if and $engine (ne .root.Values.global.vllm.model.source.type "hf") }}
- name: model
  mountPath: /model
  readOnly: true
{{- end }}
{{- with include "vllm-common.tlsMount" . }}
{{ . }}
{{- end }}
{{- if and $engine .root.Values.global.vllm.kvTiers.mooncakeStore.enabled }}
- name: kv-store
  mountPath: /etc/mooncake
  readOnly: true
{{- end }}
{{- with .role.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
vllm-common.tlsVolume, vllm-common.tlsMount: the certificate as an item of a pod's volumes, and of a container's mounts;
nothing without TLS.
Parameters: root.
*/}}
{{- define "vllm-common.tlsVolume" -}}
{{- with .root.Values.global.vllm.tls.secretName -}}
- name: tls
  secret:
    secretName: {{ . | quote }}
{{- end -}}
{{- end }}

{{- define "vllm-common.tlsMount" -}}
{{- if .root.Values.global.vllm.tls.secretName -}}
- name: tls
  mountPath: /tls
  readOnly: true
{{- end -}}
{{- end }}
