#!/bin/bash
# Ends Envoy without cutting streams: a plain SIGTERM does cut them. Runs as the container's preStop hook.
# Usage: drain.sh SECONDS_BEFORE SECONDS_AT_MOST
set -u

admin() { # METHOD PATH
  exec 3<>/dev/tcp/127.0.0.1/19000 || return 1
  printf '%s %s HTTP/1.1\r\nHost: envoy\r\nConnection: close\r\n\r\n' "$1" "$2" >&3
  cat <&3
  exec 3<&-
}

admin POST /healthcheck/fail >/dev/null # not ready any more; answers now close their connections
sleep "$1"                              # until Services have forgotten this pod
deadline=$((SECONDS + $2))
while ((SECONDS < deadline)); do
  active=$(admin GET '/stats?filter=^http.requests.downstream_rq_active$' | sed -n 's/^http.requests.downstream_rq_active: //p')
  [[ ${active%$'\r'} == 0 ]] && exit 0
  sleep 1
done
