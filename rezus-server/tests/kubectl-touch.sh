#!/usr/bin/env bash
# Changes what the machine $MACHINE shows: another type of server, in the next version of its tenant's state.
#
#   SERVER=https://127.0.0.1:6443 TOKEN=... CA=ca.pem TENANT=acme MACHINE=w-1 ./kubectl-touch.sh
#
# $MACHINE is the name of a Machine that an hcloud_server declares. Needs: bash, curl, jq.
set -euo pipefail
: "${SERVER:?set SERVER}" "${TOKEN:?set TOKEN}" "${CA:?set CA}" "${TENANT:?set TENANT}" "${MACHINE:?set MACHINE}"
# By standard input: arguments are seen by all.
ask() { curl -sS --fail --noproxy '*' --cacert "$CA" -H @<(printf 'Authorization: Bearer %s\n' "$TOKEN") "$@" "$SERVER/state/$TENANT"; }
ask | jq -e --arg machine "$MACHINE" '
  .serial += 1
  | ([.resources[] | select(.type == "hcloud_server") | .instances[].attributes | select(.name == $machine)] | length) as $found
  | if $found == 1 then . else error("\($found) servers are named \($machine)") end
  | (.resources[] | select(.type == "hcloud_server") | .instances[].attributes | select(.name == $machine) | .server_type)
      |= if . == "cx52" then "cx42" else "cx52" end
' | ask -X POST -H 'Content-Type: application/json' --data-binary @-
