{{/*
vllm-common.notes: what to do next after an install.
Parameters: root; `service` and `port`, the Service that clients use.
*/}}
{{- define "vllm-common.notes" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $name := include "vllm-common.servedNames" . | fromJsonArray | first -}}
{{- $namespace := printf "--namespace %s" .root.Release.Namespace -}}
{{- $key := $vllm.auth.apiKeySecret -}}
vLLM {{ $vllm.version }} serves {{ $name }} behind the Service {{ .service }}.

Wait until it is ready (the first start downloads the model):
  kubectl {{ $namespace }} rollout status deployment --selector app.kubernetes.io/instance={{ .root.Release.Name }}
Prove that it answers:
  helm test {{ .root.Release.Name }} {{ $namespace }} --logs
Ask it something:
  kubectl {{ $namespace }} port-forward service/{{ .service }} 8000:{{ int64 .port }} &
{{- if $key.name }}
  KEY=$(kubectl {{ $namespace }} get secret {{ $key.name }} --output jsonpath='{.data.{{ $key.key | replace "." "\\." }}}' | base64 --decode)
{{- end }}
  curl {{ if $vllm.tls.secretName }}--insecure https{{ else }}http{{ end }}://localhost:8000/v1/completions --header 'Content-Type: application/json' \
    {{ if $key.name }}--header "Authorization: Bearer $KEY" {{ end }}--data '{"model": "{{ $name }}", "prompt": "Hello", "max_tokens": 16}'
{{- if eq (include "vllm-common.user" .) "0" }}

Note: the official {{ $vllm.accelerator }} image of vLLM {{ $vllm.version }} has no user of its own, so engines run as root,
which the restricted Pod Security level refuses. If your image has one, set global.vllm.security.runAsUser.
{{- end }}
{{- end }}
