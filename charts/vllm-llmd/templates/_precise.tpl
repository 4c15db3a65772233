{{/*
vllm-llmd.precise: "true" when engines tell the picker what they have in their caches, else nothing.
Parameters: root.
*/}}
{{- define "vllm-llmd.precise" -}}
{{- if eq .root.Values.endpointPicker.prefixCache.type "precise" }}true{{ end -}}
{{- end }}

{{/*
vllm-llmd.preciseProducers: the plugins of the precise index, as a JSON list: real tokens of a prompt, the engines as
they come and go, and the index of their events. Hash seeds need not agree: the picker hashes tokens itself, those of
requests and those of events.
Parameters: root.
*/}}
{{- define "vllm-llmd.preciseProducers" -}}
{{- $cache := .root.Values.endpointPicker.prefixCache -}}
{{- $url := $cache.tokenizerUrl | default (printf "http://%s:%d" (include "vllm-llmd.host" (dict "root" .root "component" "llmd-prefill")) (int64 .root.Values.prefill.port)) -}}
{{- $tokens := dict "modelName" (include "vllm-llmd.servedName" .) "vllm" (dict "url" $url) -}}
{{- $events := dict "topicFilter" "kv@" "discoverPods" true "podDiscoveryConfig" (dict "socketPort" (int64 $cache.eventsPort)) -}}
{{- $index := dict "tokenProcessorConfig" (dict "blockSize" (include "vllm-llmd.blockSize" . | int64)) "kvEventsConfig" $events "speculativeIndexing" $cache.speculative -}}
{{- list (dict "type" "token-producer" "parameters" $tokens) (dict "type" "endpoint-notification-source") (dict "type" "precise-prefix-cache-producer" "parameters" $index) | toJson -}}
{{- end }}

{{/*
vllm-llmd.prefixReaders: plugins that ask the approximate index unless they are told of another, as a JSON list.
Parameters: root.
*/}}
{{- define "vllm-llmd.prefixReaders" -}}
{{- $readers := list -}}
{{- range $type, $plugin := (include "vllm-llmd.facts" . | fromJson).plugins }}{{ if $plugin.reads_prefixes }}{{ $readers = append $readers $type }}{{ end }}{{ end -}}
{{- toJson $readers -}}
{{- end }}

{{/*
vllm-llmd.servedName: the name of the model under which engines answer and publish.
Parameters: root.
*/}}
{{- define "vllm-llmd.servedName" -}}
{{- include "vllm-common.servedNames" . | fromJsonArray | first -}}
{{- end }}

{{/*
vllm-llmd.blockSize: tokens of a block, of the engines' KV cache and of the precise index.
Parameters: root.
*/}}
{{- define "vllm-llmd.blockSize" -}}
{{- $size := 64 -}}
{{- range $flag, $value := .root.Values.global.vllm.args }}{{ if eq ($flag | replace "_" "-") "block-size" }}{{ $size = $value }}{{ end }}{{ end -}}
{{- int64 $size -}}
{{- end }}

{{/*
vllm-llmd.engineFlags: flags of both roles, as JSON: the events of the precise index. The topic tells whose they are,
by the address at which the picker knows an engine, and for which name of the model.
Parameters: root.
*/}}
{{- define "vllm-llmd.engineFlags" -}}
{{- $flags := dict -}}
{{- if include "vllm-llmd.precise" . -}}
{{- $values := .root.Values -}}
{{- $topic := printf "kv@$(POD_IP):%d@%s" (int64 $values.prefill.port) (include "vllm-llmd.servedName" .) -}}
{{- $endpoint := printf "tcp://*:%d" (int64 $values.endpointPicker.prefixCache.eventsPort) -}}
{{- $_ := set $flags "kv-events-config" (dict "enable_kv_cache_events" true "publisher" "zmq" "endpoint" $endpoint "topic" $topic) -}}
{{- $given := false -}}
{{- range $flag, $value := $values.global.vllm.args }}{{ if eq ($flag | replace "_" "-") "block-size" }}{{ $given = true }}{{ end }}{{ end -}}
{{- if not $given }}{{ $_ := set $flags "block-size" (include "vllm-llmd.blockSize" . | int64) }}{{ end -}}
{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{/*
vllm-llmd.enginePorts: ports of both roles' engines beside HTTP, by name, as JSON.
Parameters: root.
*/}}
{{- define "vllm-llmd.enginePorts" -}}
{{- $ports := dict -}}
{{- if include "vllm-llmd.precise" . }}{{ $_ := set $ports "kv-events" (int64 .root.Values.endpointPicker.prefixCache.eventsPort) }}{{ end -}}
{{- toJson $ports -}}
{{- end }}

{{/*
vllm-llmd.eventsIngress: what lets the picker reach the engines' events, as a list of NetworkPolicy rules.
Parameters: root.
*/}}
{{- define "vllm-llmd.eventsIngress" -}}
{{- if include "vllm-llmd.precise" . }}
- ports:
    - port: kv-events
      protocol: TCP
  from:
    {{- include "vllm-llmd.peers" (dict "root" .root "components" (list "picker")) | nindent 4 }}
{{- end }}
{{- end }}
