{{/*
vllm-common.notes: what to do next after an install.
Parameters: root; `service` and `port`, the Service that clients use, or a host with dots that pods can reach; optional
`request`, as for vllm-common.test, and `workload`, that of the engines behind it, where they have no program before them.
*/}}
{{- define "vllm-common.notes" -}}
{{- $vllm := .root.Values.global.vllm -}}
{{- $name := include "vllm-common.servedNames" . | fromJsonArray | first -}}
{{- $namespace := printf "--namespace %s" .root.Release.Namespace -}}
{{- $key := $vllm.auth.apiKeySecret -}}
{{- $request := .request | default dict -}}
{{- $inside := contains "." .service -}}
{{- $address := ternary (printf "%s:%d" .service (int64 .port)) "localhost:8000" $inside -}}
{{ if $vllm.simulator.enabled }}The simulator {{ $vllm.simulator.version }} stands for{{ else }}vLLM {{ $vllm.version }} serves{{ end }} {{ $name }} behind {{ if not $inside }}the Service {{ end }}{{ .service }}.

Wait until it is ready{{ if not $vllm.simulator.enabled }} (the first start downloads the model){{ end }}:
{{- if eq (.workload | default "deployment") "leaderWorkerSet" }}
  kubectl {{ $namespace }} wait leaderworkerset --for condition=Available --timeout 1h --selector app.kubernetes.io/instance={{ .root.Release.Name }}
{{- else }}
  kubectl {{ $namespace }} rollout status deployment --selector app.kubernetes.io/instance={{ .root.Release.Name }}
{{- end }}
Prove that it answers:
  helm test {{ .root.Release.Name }} {{ $namespace }} --logs
Ask it something{{ if $inside }} from inside the cluster{{ end }}:
{{- if not $inside }}
  kubectl {{ $namespace }} port-forward service/{{ .service }} 8000:{{ int64 .port }} &
{{- end }}
{{- if $key.name }}
  KEY=$(kubectl {{ $namespace }} get secret {{ $key.name }} --output jsonpath='{.data.{{ $key.key | replace "." "\\." }}}' | base64 --decode)
{{- end }}
  curl {{ if or $vllm.tls.secretName $request.https }}--insecure https{{ else }}http{{ end }}://{{ $request.host | default $address }}{{ $request.prefix }}/v1/completions --header 'Content-Type: application/json' \
    {{ if $request.host }}--connect-to ::{{ $address }} {{ end }}{{ range $header, $value := $request.headers }}--header '{{ $header }}: {{ $value }}' {{ end }}{{ if $key.name }}--header "Authorization: Bearer $KEY" {{ end }}--data '{"model": "{{ $name }}", "prompt": "Hello", "max_tokens": 16}'
{{- if eq (include "vllm-common.user" .) "0" }}

Note: the official {{ $vllm.accelerator }} image of vLLM {{ $vllm.version }} has no user of its own, so engines run as root,
which the restricted Pod Security level refuses. If your image has one, set global.vllm.security.runAsUser.
{{- end }}
{{- end }}
