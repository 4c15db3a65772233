{{/*
vllm-llmd.pickerConfig: the picker's configuration, as YAML. A request goes to a decode engine; the decider says
whether a prefill engine computes its KV first; each is the one of its role with the best weighted scores.
Parameters: root.
*/}}
{{- define "vllm-llmd.pickerConfig" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $config := dict "kind" "EndpointPickerConfig" "apiVersion" (include "vllm-llmd.configVersion" .) -}}
{{- $_ := set $config "plugins" (include "vllm-llmd.plugins" . | fromJsonArray) -}}
{{- $profiles := list -}}
{{- range $role := list "prefill" "decode" -}}
{{- $scorers := (index $picker.profiles $role).scorers -}}
{{- $plugins := list (dict "pluginRef" (printf "%s-filter" $role)) -}}
{{- range $scorer, $weight := $scorers }}{{ if $weight }}{{ $plugins = append $plugins (dict "pluginRef" $scorer "weight" $weight) }}{{ end }}{{ end -}}
{{- $profiles = append $profiles (dict "name" $role "plugins" (append $plugins (dict "pluginRef" "max-score-picker"))) -}}
{{- end -}}
{{- $_ := set $config "schedulingProfiles" $profiles -}}
{{- with include "vllm-llmd.featureGates" . | fromJsonArray }}{{ $_ := set $config "featureGates" . }}{{ end -}}
{{- if $picker.flowControl.enabled -}}
{{- $_ := set $config "flowControl" (dict "maxRequests" (int64 $picker.flowControl.maxRequests) "defaultRequestTTL" (printf "%ds" (int64 $picker.flowControl.requestSeconds))) -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy $picker.extraConfig) | toYaml -}}
{{- end }}

{{/*
vllm-llmd.configVersion: the apiVersion that the release reads, the newest where it reads several.
Parameters: root.
*/}}
{{- define "vllm-llmd.configVersion" -}}
{{- $newest := dict "since" "0.0.0" -}}
{{- range $name, $window := (include "vllm-llmd.facts" . | fromJson).config_versions -}}
{{- $since := $window.since | default "0.0.1" -}}
{{- if and (include "vllm-llmd.within" (dict "root" $.root "window" $window)) (semverCompare (printf ">%s" $newest.since) $since) }}{{ $newest = dict "since" $since "name" $name }}{{ end -}}
{{- end -}}
{{- $newest.name -}}
{{- end }}

{{/*
vllm-llmd.featureGates: feature gates as a JSON list. Before 0.9 the deciders' look at the prefix cache was one.
Parameters: root.
*/}}
{{- define "vllm-llmd.featureGates" -}}
{{- $gates := list -}}
{{- if semverCompare "<0.9.0" (include "vllm-llmd.version" .) }}{{ $gates = append $gates "prepareDataPlugins" }}{{ end -}}
{{- if .root.Values.endpointPicker.flowControl.enabled }}{{ $gates = append $gates "flowControl" }}{{ end -}}
{{- toJson $gates -}}
{{- end }}

{{/*
vllm-llmd.plugins: every plugin that the profiles use, as a JSON list. Before 0.9 the prefix index belonged to the
scorer, and the headers to a plugin of their own.
Parameters: root.
*/}}
{{- define "vllm-llmd.plugins" -}}
{{- $picker := .root.Values.endpointPicker -}}
{{- $old := semverCompare "<0.9.0" (include "vllm-llmd.version" .) -}}
{{- $prefix := dict "lruCapacityPerServer" (int64 $picker.prefixCache.blocksPerEngine) -}}
{{- if $old -}}
{{- $_ := set $prefix "maxPrefixBlocksToMatch" (div (int64 $picker.prefixCache.maxTokens) 64) -}}
{{- else -}}
{{- $_ := set $prefix "maxPrefixTokensToMatch" (int64 $picker.prefixCache.maxTokens) -}}
{{- end -}}
{{- $plugins := list (dict "type" "prefill-filter") (dict "type" "decode-filter") -}}
{{- if .root.Values.global.vllm.tls.secretName }}{{ $plugins = append $plugins (dict "type" "metrics-data-source" "parameters" (dict "scheme" "https")) }}{{ end -}}
{{- if $old }}{{ $plugins = append $plugins (dict "type" "disagg-headers-handler") }}{{ else }}{{ $plugins = append $plugins (dict "type" "approx-prefix-cache-producer" "parameters" $prefix) }}{{ end -}}
{{- /* token-load-scorer wants more of this producer than the picker adds by itself. */}}
{{- if or (index $picker.profiles.prefill.scorers "token-load-scorer") (index $picker.profiles.decode.scorers "token-load-scorer") }}{{ $plugins = append $plugins (dict "type" "inflight-load-producer") }}{{ end -}}
{{- range $scorer := keys $picker.profiles.prefill.scorers $picker.profiles.decode.scorers | uniq | sortAlpha -}}
{{- $weight := addf (index $picker.profiles.prefill.scorers $scorer | default 0) (index $picker.profiles.decode.scorers $scorer | default 0) -}}
{{- $plugin := dict "type" $scorer -}}
{{- if and $old (eq $scorer "prefix-cache-scorer") }}{{ $_ := set $plugin "parameters" $prefix }}{{ end -}}
{{- if gt $weight 0.0 }}{{ $plugins = append $plugins $plugin }}{{ end -}}
{{- end -}}
{{- $decider := dict "type" "always-disagg-pd-decider" -}}
{{- if eq $picker.decider.type "uncachedTokens" -}}
{{- $decider = dict "type" "prefix-based-pd-decider" "parameters" (dict "nonCachedTokens" (int64 $picker.decider.uncachedTokens)) -}}
{{- end -}}
{{- $handler := dict "type" "disagg-profile-handler" "parameters" (dict "deciders" (dict "prefill" $decider.type)) -}}
{{- concat $plugins (list (dict "type" "max-score-picker") $decider $handler) | toJson -}}
{{- end }}
