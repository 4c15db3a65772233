{{/*
vllm-common.modelPath: what the engine is told to load: the hub's repository, or the folder of a mounted source.
Parameters: root.
*/}}
{{- define "vllm-common.modelPath" -}}
{{- $model := .root.Values.global.vllm.model -}}
{{- if eq $model.source.type "hf" -}}
{{- $model.name -}}
{{- else if eq $model.source.type "hostPath" -}}
/model
{{- else -}}
{{- $path := (index $model.source $model.source.type).path -}}
{{- printf "/model%s" (ternary (printf "/%s" $path) "" (ne $path "")) -}}
{{- end -}}
{{- end }}

{{/*
vllm-common.servedNames: names of the model in the API, as a JSON list. A mounted source keeps the model's name,
so that clients do not see where the weights lie.
Parameters: root.
*/}}
{{- define "vllm-common.servedNames" -}}
{{- $model := .root.Values.global.vllm.model -}}
{{- $model.servedNames | default (list $model.name) | toJson -}}
{{- end }}

{{/*
vllm-common.modelVolume: the pod volume of a mounted source; nothing for the hub.
Parameters: root.
*/}}
{{- define "vllm-common.modelVolume" -}}
{{- $source := .root.Values.global.vllm.model.source -}}
{{- if eq $source.type "pvc" }}
- name: model
  persistentVolumeClaim:
    claimName: {{ $source.pvc.claimName | quote }}
    readOnly: true
{{- else if eq $source.type "oci" }}
- name: model
  image:
    reference: {{ $source.oci.reference | quote }}
    pullPolicy: {{ $source.oci.pullPolicy }}
{{- else if eq $source.type "hostPath" }}
- name: model
  hostPath:
    path: {{ $source.hostPath.path | quote }}
    type: Directory
{{- end }}
{{- end }}
