{{/*
vllm-llmd.pickerConfig: the picker's configuration, as YAML. A request goes to a decode engine; the decider says
whether a prefill engine computes its KV first; each is the one of its role with the best weighted scores.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerConfig" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $config := dict "kind" "EndpointPickerConfig" "apiVersion" (include "vllm-llmd.newest" (dict "root" .root "of" "config_versions")) -}}
{{- $_ := set $config "plugins" (include "vllm-llmd.plugins" . | fromJsonArray) -}}
{{- $_ := set $config "schedulingProfiles" (include "vllm-llmd.profiles" . | fromJsonArray) -}}
{{- if include "vllm-llmd.precise" . -}}
{{- $source := dict "pluginRef" "endpoint-notification-source" "extractors" (list (dict "pluginRef" "precise-prefix-cache-producer")) -}}
{{- $_ := set $config "dataLayer" (dict "sources" (list $source)) -}}
{{- end -}}
{{- if $picker.flowControl.enabled -}}
{{- $_ := set $config "featureGates" (list "flowControl") -}}
{{- $_ := set $config "flowControl" (dict "maxRequests" (int64 $picker.flowControl.maxRequests) "defaultRequestTTL" (printf "%ds" (int64 $picker.flowControl.requestSeconds))) -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy $picker.extraConfig) | toYaml -}}
{{- end }}

{{/*
vllm-llmd.profiles: the scheduling profiles of both roles, as a JSON list: who may be chosen, and how.
Parameters: root.
*/}}
{{- define "vllm-llmd.profiles" -}}
{{- $profiles := list -}}
{{- range $role := list "prefill" "decode" -}}
{{- $profile := index $.root.Values.endpointPicker.profiles $role -}}
{{- $plugins := list (dict "pluginRef" (printf "%s-filter" $role)) -}}
{{- range $profile.filters }}{{ $plugins = append $plugins (dict "pluginRef" .) }}{{ end -}}
{{- range $scorer, $weight := $profile.scorers }}{{ if $weight }}{{ $plugins = append $plugins (dict "pluginRef" $scorer "weight" $weight) }}{{ end }}{{ end -}}
{{- $profiles = append $profiles (dict "name" $role "plugins" (append $plugins (dict "pluginRef" $profile.picker))) -}}
{{- end -}}
{{- toJson $profiles -}}
{{- end }}

{{/*
vllm-llmd.plugins: every plugin that the profiles use, as a JSON list. Parameters of the user's own win over the
built ones; a plugin that only they name is added. Before 0.9 the headers were set by a plugin of their own.
Parameters: root.
*/}}
{{- define "vllm-llmd.plugins" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $handlers := list -}}
{{- if semverCompare "<0.9.0" (include "vllm-llmd.version" .) }}{{ $handlers = append $handlers (dict "type" "disagg-headers-handler") }}{{ end -}}
{{- $decider := dict "type" "always-disagg-pd-decider" -}}
{{- if eq $picker.decider.type "uncachedTokens" -}}
{{- $decider = dict "type" "prefix-based-pd-decider" "parameters" (dict "nonCachedTokens" (int64 $picker.decider.uncachedTokens)) -}}
{{- end -}}
{{- $handlers = concat $handlers (list $decider (dict "type" "disagg-profile-handler" "parameters" (dict "deciders" (dict "prefill" $decider.type)))) -}}
{{- $plugins := concat (include "vllm-llmd.producers" . | fromJsonArray) (include "vllm-llmd.choosers" . | fromJsonArray) $handlers -}}
{{- $own := deepCopy $picker.extraPluginParameters -}}
{{- $merged := list -}}
{{- range $plugins -}}
{{- $parameters := mergeOverwrite (.parameters | default dict) (index $own .type | default dict) -}}
{{- if $parameters }}{{ $_ := set . "parameters" $parameters }}{{ end -}}
{{- $merged = append $merged . -}}
{{- $_ := unset $own .type -}}
{{- end -}}
{{- range $type, $parameters := $own }}{{ $merged = append $merged (dict "type" $type "parameters" $parameters) }}{{ end -}}
{{- toJson $merged -}}
{{- end }}

{{/*
vllm-llmd.producers: the plugins that find out what scorers and deciders ask, as a JSON list. The deciders ask the
approximate index only, so it is there beside the precise one.
Parameters: root.
*/}}
{{- define "vllm-llmd.producers" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $prefix := dict "lruCapacityPerServer" (int64 $picker.prefixCache.blocksPerEngine) "maxPrefixTokensToMatch" (int64 $picker.prefixCache.maxTokens) -}}
{{- $producers := list (dict "type" "approx-prefix-cache-producer" "parameters" $prefix) -}}
{{- if .root.Values.global.vllm.tls.secretName }}{{ $producers = append $producers (dict "type" "metrics-data-source" "parameters" (dict "scheme" "https")) }}{{ end -}}
{{- $load := dict "type" "inflight-load-producer" -}}
{{- if include "vllm-llmd.precise" . -}}
{{- $producers = concat $producers (include "vllm-llmd.preciseProducers" . | fromJsonArray) -}}
{{- $_ := set $load "parameters" (dict "prefixMatchInfoProducerName" "precise-prefix-cache-producer") -}}
{{- end -}}
{{- /* token-load-scorer wants more of this producer than the picker adds by itself. */}}
{{- if or (index $picker.profiles.prefill.scorers "token-load-scorer") (index $picker.profiles.decode.scorers "token-load-scorer") }}{{ $producers = append $producers $load }}{{ end -}}
{{- toJson $producers -}}
{{- end }}

{{/*
vllm-llmd.choosers: the filters, scorers and pickers of both profiles, as a JSON list.
Parameters: root.
*/}}
{{- define "vllm-llmd.choosers" -}}
{{- $profiles := .root.Values.endpointPicker.profiles -}}
{{- $types := concat (list "prefill-filter" "decode-filter") $profiles.prefill.filters $profiles.decode.filters -}}
{{- range $scorer := keys $profiles.prefill.scorers $profiles.decode.scorers | uniq | sortAlpha -}}
{{- if or (index $profiles.prefill.scorers $scorer) (index $profiles.decode.scorers $scorer) }}{{ $types = append $types $scorer }}{{ end -}}
{{- end -}}
{{- $choosers := list -}}
{{- $named := dict "prefixMatchInfoProducerName" "precise-prefix-cache-producer" -}}
{{- range concat $types (list $profiles.prefill.picker $profiles.decode.picker) | uniq -}}
{{- $plugin := dict "type" . -}}
{{- if and (include "vllm-llmd.precise" $) (has . (include "vllm-llmd.prefixReaders" $ | fromJsonArray)) }}{{ $_ := set $plugin "parameters" (deepCopy $named) }}{{ end -}}
{{- $choosers = append $choosers $plugin -}}
{{- end -}}
{{- toJson $choosers -}}
{{- end }}
