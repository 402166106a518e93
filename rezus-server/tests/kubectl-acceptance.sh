#!/usr/bin/env bash
# Acceptance check of a read-only Kubernetes-style API with the real kubectl.
#
#   SERVER=https://127.0.0.1:6443 TOKEN=... TENANT=acme ./kubectl-acceptance.sh
#
# env: SERVER   base URL (required)          TENANT  a tenant that has at least two machines (required)
#      TOKEN    bearer token, may be empty   KUBECTL kubectl to use (default: kubectl)
#      GROUP    API group (rezuscloud.io)      CA      PEM file to trust (else TLS is not verified)
#      MACHINES/TENANTS/GROUPS_/RUNS/PROVIDERS  plural names (machines, tenants, nodegroups, runs, providers)
#      ONLY     regular expression: run only the checks whose name matches
#      VERBOSE  1: show what a failed check printed, in full
#      STRICT   1: a refused sendInitialEvents is a failure too (client-go falls back to a list, kube-rs streaming_lists does not)
#      TOUCH    a command that changes machine $M1 (exported as MACHINE): then live watch events are checked as well
#      ORACLE   1: the server is a real kube-apiserver with CRDs and a read-only token: skip what only rezus promises
#
# It should change nothing: writes are sent for names that do not exist, or with dryRun=All, and must be refused (a server
# that wrongly takes them would be left with a machine named kubectl-acceptance-probe; the check nothing-changed tells).
# Needs: bash, curl, jq, timeout; python3 and openssl only where SERVER is http:// and TOKEN is set
# (kubectl sends no token over plain http, so the script then puts a TLS front on loopback before it).
set -u -o pipefail
: "${SERVER:?set SERVER}" "${TENANT:?set TENANT}"
SERVER=${SERVER%/}; TOKEN=${TOKEN:-}; KUBECTL=${KUBECTL:-kubectl}; GROUP=${GROUP:-rezuscloud.io}; CA=${CA:-}
MACHINES=${MACHINES:-machines}; TENANTS=${TENANTS:-tenants}; GROUPS_=${GROUPS_:-nodegroups}; RUNS=${RUNS:-runs}; PROVIDERS=${PROVIDERS:-providers}
ORACLE=${ORACLE:-0}; STRICT=${STRICT:-0}; TOUCH=${TOUCH:-}; ONLY=${ONLY:-.}; VERBOSE=${VERBOSE:-0}
T=$(mktemp -d); PASS=0; FAIL=0; SKIP=0; PIDS=()
cleanup() { local p; for p in "${PIDS[@]:-}"; do [ -n "$p" ] && kill "$p" 2>/dev/null; done; rm -rf "$T"; }
trap cleanup EXIT

# ---------------------------------------------------------------- plumbing
ok()   { PASS=$((PASS+1)); echo "PASS $1"; }
bad()  { FAIL=$((FAIL+1)); echo "FAIL $1${2:+ -- $(printf '%s' "$2" | tr '\n' ' ' | cut -c1-240)}"; [ "$VERBOSE" = 1 ] && { sed 's/^/     out: /' "$T/out"; sed 's/^/     err: /' "$T/err"; } 2>/dev/null; return 0; }
skip() { SKIP=$((SKIP+1)); echo "SKIP $1${2:+ -- $2}"; }
want() { [[ "$1" =~ $ONLY ]]; }

# From a file: arguments are seen by all.
CURLAUTH=(); [ -n "$TOKEN" ] && { printf 'Authorization: Bearer %s\n' "$TOKEN" > "$T/auth"; CURLAUTH=(-H "@$T/auth"); }
CURLTLS=(); case $SERVER in https:*) if [ -n "$CA" ]; then CURLTLS=(--cacert "$CA"); else CURLTLS=(-k); fi;; esac
# c PATH [curl args]: body in $T/body, headers in $T/hdr, prints the status
c() { local p=$1; shift; : > "$T/body"; : > "$T/hdr"; curl -sS -g -m 20 "${CURLTLS[@]}" "${CURLAUTH[@]}" -D "$T/hdr" -o "$T/body" -w '%{http_code}' "$@" "$SERVER$p" 2>"$T/cerr"; }
hdr() { grep -i "^$1:" "$T/hdr" | tail -1 | cut -d: -f2- | tr -d '\r' | sed 's/^ *//'; }
j() { jq -r "$@" < "$T/body" 2>/dev/null; }

KSERVER=$SERVER
if [ -n "$TOKEN" ] && [[ $SERVER == http:* ]]; then
  command -v python3 >/dev/null && command -v openssl >/dev/null || { echo "python3 and openssl are needed: kubectl sends no token over http://"; exit 2; }
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$T/k.pem" -out "$T/c.pem" -days 1 -subj /CN=localhost -addext 'subjectAltName=IP:127.0.0.1' >/dev/null 2>&1
  cat > "$T/front.py" <<'PY'
import socket, ssl, sys, threading, urllib.parse
cert, key, target, out = sys.argv[1:5]
u = urllib.parse.urlsplit(target); host, port = u.hostname, u.port or 80
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); ctx.load_cert_chain(cert, key)
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind(("127.0.0.1", 0)); l.listen(64)
open(out, "w").write(str(l.getsockname()[1]))
def pump(a, b):
    try:
        while True:
            d = a.recv(65536)
            if not d: break
            b.sendall(d)
    except OSError: pass
    for s in (a, b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(raw):
    try:
        s = ctx.wrap_socket(raw, server_side=True); t = socket.create_connection((host, port))
    except OSError: raw.close(); return
    threading.Thread(target=pump, args=(t, s), daemon=True).start(); pump(s, t)
while True:
    r, _ = l.accept(); threading.Thread(target=serve, args=(r,), daemon=True).start()
PY
  python3 "$T/front.py" "$T/c.pem" "$T/k.pem" "$SERVER" "$T/port" & PIDS+=($!)
  for _ in $(seq 100); do [ -s "$T/port" ] && break; sleep 0.05; done
  KSERVER=https://127.0.0.1:$(cat "$T/port"); CA=$T/c.pem
  echo "note: kubectl goes through a TLS front ($KSERVER), since it drops tokens on http://"
fi
export HOME=$T/home KUBECONFIG=$T/kubeconfig KUBECACHEDIR=$T/cache; mkdir -p "$HOME"
{ echo "apiVersion: v1"; echo "kind: Config"; echo "current-context: x"
  echo "clusters: [{name: c, cluster: {server: \"$KSERVER\"$( [[ $KSERVER == https:* ]] && { [ -n "$CA" ] && echo ", certificate-authority: \"$CA\"" || echo ", insecure-skip-tls-verify: true"; })}}]"
  if [ -n "$TOKEN" ]; then echo "users: [{name: u, user: {token: \"$TOKEN\"}}]"; else echo "users: [{name: u, user: {}}]"; fi
  echo "contexts: [{name: x, context: {cluster: c, user: u}}]"; } > "$KUBECONFIG"
# k ARGS: run kubectl; stdout in $T/out, stderr in $T/err, rc in $RC
k() { timeout "${KT:-30}" "$KUBECTL" "$@" >"$T/out" 2>"$T/err" </dev/null; RC=$?; }
lines() { wc -l < "$T/out" | tr -d ' '; }
# until_lines N: waits until that many are printed, for 20 s at most
until_lines() { local i; for i in $(seq 200); do [ "$(lines)" -ge "$1" ] && return; sleep 0.1; done; }
out() { cat "$T/out"; }
both() { cat "$T/out" "$T/err"; }
# refused NAME kubectl-args: the server itself must say no, with a Status kubectl understands
refused() { local n=$1; shift; want "$n" || return 0; k "$@"
  if [ $RC -ne 0 ] && both | grep -Eq 'Error from server \((MethodNotAllowed|Forbidden)\)|(is read-only|does not allow this method|forbidden)' && ! both | grep -q 'failed to download openapi'; then ok "$n"; else bad "$n" "rc=$RC $(both | tail -3)"; fi; }

TABLE='application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'
V=$(c /apis/"$GROUP" >/dev/null; j .preferredVersion.version); [ -n "$V" ] && [ "$V" != null ] || { c /apis >/dev/null; V=$(j ".groups[]|select(.name==\"$GROUP\")|.preferredVersion.version"); }
GV=$GROUP/${V:-v1alpha1}; API=/apis/$GV; NSAPI=$API/namespaces/$TENANT
c "$NSAPI/$MACHINES" -H 'Accept: application/json' >/dev/null; cp "$T/body" "$T/machines.json"
N=$(jq '.items|length' "$T/machines.json" 2>/dev/null || echo 0); M1=$(jq -r '.items[0].metadata.name // ""' "$T/machines.json" 2>/dev/null); M2=$(jq -r '.items[1].metadata.name // ""' "$T/machines.json" 2>/dev/null)
RV=$(jq -r '.metadata.resourceVersion // ""' "$T/machines.json" 2>/dev/null)
LK=$(jq -r '.items[0].metadata.labels // {} | keys[0] // ""' "$T/machines.json" 2>/dev/null); LV=$(jq -r --arg k "$LK" '.items[0].metadata.labels[$k] // ""' "$T/machines.json" 2>/dev/null)
MKIND=$(jq -r '.items[0].kind // "Machine"' "$T/machines.json" 2>/dev/null); MSING=$(printf '%s' "$MKIND" | tr A-Z a-z)
[ "${N:-0}" -ge 2 ] || { echo "FAIL setup -- tenant $TENANT needs two machines, $SERVER$NSAPI/$MACHINES shows ${N:-0}: $(head -c 200 "$T/machines.json")"; echo "0 passed, 1 failed"; exit 1; }
echo "note: $($KUBECTL version --client 2>/dev/null | head -1); group-version $GV; tenant $TENANT with $N machines; resourceVersion $RV"

# ---------------------------------------------------------------- 1 discovery and version
n=raw-version;       want $n && { s=$(c /version); [ "$s" = 200 ] && [ "$(j '.gitVersion|test("^v[0-9]+\\.[0-9]+\\.[0-9]+")')" = true ] && [ "$(j '.major|test("^[0-9]+$")')" = true ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=raw-health;        want $n && { a=; for p in /healthz /livez /readyz; do a="$a$(c $p) "; done; [ "$a" = "200 200 200 " ] && ok $n || bad $n "$a"; }
n=raw-apis-legacy;   want $n && { s=$(c /apis -H 'Accept: application/json'); [ "$s" = 200 ] && [ "$(j .kind)" = APIGroupList ] && j '.groups[].name' | grep -qx "$GROUP" && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=raw-apis-aggregated; want $n && { s=$(c /apis -H 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json')
   ct=$(hdr content-type); if [[ $ct == *as=APIGroupDiscoveryList* ]]; then [[ $ct == *g=apidiscovery.k8s.io* && $ct == *v=v2* ]] && [ "$(j .kind)" = APIGroupDiscoveryList ] && [ "$(j ".items[]|select(.metadata.name==\"$GROUP\")|.versions[0].resources[]|select(.resource==\"$MACHINES\")|.scope+\"/\"+.responseKind.kind")" = "Namespaced/$MKIND" ] && ok $n || bad $n "$ct $(head -c 200 "$T/body")"
   elif [ "$s" = 200 ] && [ "$(j .kind)" = APIGroupList ]; then skip $n "the server answers with the older form, which is allowed"; else bad $n "$s $ct"; fi; }
n=raw-discovery-etag; want $n && { c /apis -H 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' >/dev/null; e=$(hdr etag); if [ -z "$e" ]; then skip $n "no ETag"; else s=$(c /apis -H 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' -H "If-None-Match: $e"); [ "$s" = 304 ] && ok $n || bad $n "$s"; fi; }
n=raw-group;         want $n && { s=$(c "/apis/$GROUP"); [ "$s" = 200 ] && [ "$(j .kind)" = APIGroup ] && ok $n || bad $n "$s"; }
n=raw-resourcelist;  want $n && { s=$(c "$API"); [ "$s" = 200 ] && [ "$(j .kind)" = APIResourceList ] && [ "$(j ".resources[]|select(.name==\"$MACHINES\")|.namespaced")" = true ] && [ "$(j ".resources[]|select(.name==\"$TENANTS\")|.namespaced")" = false ] && [ "$(j "[.resources[]|select(.name==\"$MACHINES\")|.verbs[]]|sort|join(\",\")|test(\"get,list.*watch\")")" = true ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
n=raw-unknown-group; want $n && { s=$(c /apis/nope.example/v1); [ "$s" = 404 ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=version;           want $n && { k version; [ $RC = 0 ] && grep -q '^Server Version: v' "$T/out" && ok $n || bad $n "rc=$RC $(both)"; }
n=api-versions;      want $n && { k api-versions; [ $RC = 0 ] && grep -qx "$GV" "$T/out" && ok $n || bad $n "rc=$RC $(both)"; }
n=api-resources;     want $n && { k api-resources --api-group="$GROUP"; r=$RC; m=
   for x in $MACHINES:true $GROUPS_:true $RUNS:true $TENANTS:false $PROVIDERS:false; do grep -E "^${x%:*} " "$T/out" | grep -q " ${x#*:} " || m="$m $x"; done
   [ $r = 0 ] && [ -z "$m" ] && ok $n || bad $n "rc=$r missing or wrong scope:$m"; }
n=api-resources-wide; want $n && { k api-resources --api-group="$GROUP" -o wide; [ $RC = 0 ] && for v in get list watch; do grep -E "^$MACHINES " "$T/out" | grep -Eq "[ ,]$v[ ,]" || RC=$v; done; [ $RC = 0 ] && ok $n || bad $n "$(grep -E "^$MACHINES " "$T/out")"; }
n=api-resources-verbs; want $n && if [ "$ORACLE" = 1 ]; then skip $n ORACLE; else k api-resources --verbs=delete --api-group="$GROUP" -o name; [ $RC = 0 ] && [ ! -s "$T/out" ] && ok $n || bad $n "offers delete: $(out)"; fi

# ---------------------------------------------------------------- 2 get, tables
n=get-tenants;       want $n && { k get "$TENANTS"; [ $RC = 0 ] && head -1 "$T/out" | grep -q '^NAME .*AGE' && grep -q "^$TENANT " "$T/out" && ok $n || bad $n "rc=$RC $(both)"; }
n=get-machines;      want $n && { k get "$MACHINES" -n "$TENANT"; [ $RC = 0 ] && head -1 "$T/out" | grep -q '^NAME .*AGE' && [ "$(lines)" = $((N+1)) ] && grep -q "^$M1 " "$T/out" && ok $n || bad $n "rc=$RC lines=$(lines) want $((N+1))"; }
n=get-server-columns; want $n && { k get "$MACHINES" -n "$TENANT"; [ "$(head -1 "$T/out" | wc -w)" -gt 2 ] && ok $n || bad $n "only '$(head -1 "$T/out")': no server-side Table?"; }
n=get-wide;          want $n && { k get "$MACHINES" -n "$TENANT"; a=$(head -1 "$T/out" | wc -w); k get "$MACHINES" -n "$TENANT" -o wide; b=$(head -1 "$T/out" | wc -w); [ $RC = 0 ] && [ "$b" -gt "$a" ] && [ "$(lines)" = $((N+1)) ] && ok $n || bad $n "$a columns, wide $b"; }
n=get-all-namespaces; want $n && { k get "$MACHINES" -A; [ $RC = 0 ] && head -1 "$T/out" | grep -q '^NAMESPACE  *NAME' && [ "$(awk -v t="$TENANT" '$1==t' "$T/out" | wc -l)" -eq "$N" ] && ok $n || bad $n "rc=$RC $(head -2 "$T/out")"; }
n=get-one;           want $n && { k get "$MSING" "$M1" -n "$TENANT"; [ $RC = 0 ] && [ "$(lines)" = 2 ] && sed -n 2p "$T/out" | grep -q "^$M1 " && ok $n || bad $n "rc=$RC $(both)"; }
n=get-slash-form;    want $n && { k get "$MSING/$M1" "$MSING/$M2" -n "$TENANT" --no-headers; [ $RC = 0 ] && [ "$(lines)" = 2 ] && ok $n || bad $n "rc=$RC $(both)"; }
n=get-full-name;     want $n && { k get "$MACHINES.${GV#*/}.$GROUP" -n "$TENANT" --no-headers; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(both)"; }
n=get-short-name;    want $n && { c "$API" >/dev/null; sn=$(j ".resources[]|select(.name==\"$MACHINES\")|.shortNames[0] // \"\""); if [ -z "$sn" ]; then skip $n "no short name"; else k get "$sn" -n "$TENANT" --no-headers; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "$sn rc=$RC $(both)"; fi; }
n=get-two-kinds;     want $n && { k get "$TENANTS,$MACHINES" -n "$TENANT"; [ $RC = 0 ] && grep -q "^$MSING.$GROUP/$M1 " "$T/out" && grep -q "$GROUP/$TENANT " "$T/out" && ok $n || bad $n "rc=$RC $(both | head -3)"; }
n=get-no-headers;    want $n && { k get "$MACHINES" -n "$TENANT" --no-headers; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "$(lines)"; }
n=get-show-labels;   want $n && { k get "$MACHINES" -n "$TENANT" --show-labels; [ $RC = 0 ] && head -1 "$T/out" | grep -q ' LABELS$' && { [ -z "$LK" ] || grep -q "$LK=$LV" "$T/out"; } && ok $n || bad $n "rc=$RC $(sed -n 2p "$T/out")"; }
n=get-label-columns; if want $n; then if [ -z "$LK" ]; then skip $n "no labels"; else k get "$MACHINES" -n "$TENANT" -L "$LK"; [ $RC = 0 ] && grep "^$M1 " "$T/out" | grep -q " $LV\$" && ok $n || bad $n "rc=$RC $(sed -n 2p "$T/out")"; fi; fi
n=get-sort-by;       want $n && { k get "$MACHINES" -n "$TENANT" --sort-by=.metadata.name --no-headers; [ $RC = 0 ] && awk '{print $1}' "$T/out" | LC_ALL=C sort -c 2>/dev/null && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=get-sort-by-age;   want $n && { k get "$MACHINES" -n "$TENANT" --sort-by=.metadata.creationTimestamp --no-headers; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=get-empty-namespace; want $n && { k get "$MACHINES" -n no-such-tenant-xyz; both | grep -Eq 'No resources found in no-such-tenant-xyz namespace|NotFound|Forbidden' && ok $n || bad $n "rc=$RC $(both)"; }
n=get-not-found;     want $n && { k get "$MSING" no-such-machine-xyz -n "$TENANT"; [ $RC = 1 ] && grep -q "Error from server (NotFound): $MACHINES.$GROUP \"no-such-machine-xyz\" not found" "$T/err" && ok $n || bad $n "rc=$RC $(both)"; }
n=get-ignore-not-found; want $n && { k get "$MSING" no-such-machine-xyz -n "$TENANT" --ignore-not-found; [ $RC = 0 ] && [ ! -s "$T/out" ] && ok $n || bad $n "rc=$RC $(both)"; }
n=get-unknown-kind;  want $n && { k get frobnicators; [ $RC = 1 ] && grep -q "doesn't have a resource type \"frobnicators\"" "$T/err" && ok $n || bad $n "rc=$RC $(both)"; }

# ---------------------------------------------------------------- 3 outputs
n=out-json;          want $n && { k get "$MACHINES" -n "$TENANT" -o json; [ $RC = 0 ] && jq -e --arg gv "$GV" --arg kd "$MKIND" --arg t "$TENANT" --argjson n "$N" '.kind=="List" and (.items|length)==$n and all(.items[]; .apiVersion==$gv and .kind==$kd and .metadata.namespace==$t and (.metadata.uid|length)>0 and (.metadata.resourceVersion|type)=="string" and (.metadata.creationTimestamp|fromdateiso8601)>0)' "$T/out" >/dev/null && ok $n || bad $n "rc=$RC $(head -c 300 "$T/out")"; }
n=out-json-all;      want $n && { k get "$MACHINES" -A -o json; [ $RC = 0 ] && [ "$(jq --arg t "$TENANT" '[.items[]|select(.metadata.namespace==$t)]|length' "$T/out")" = "$N" ] && ok $n || bad $n "rc=$RC"; }
n=out-json-one;      want $n && { k get "$MSING" "$M1" -n "$TENANT" -o json; [ $RC = 0 ] && [ "$(jq -r '.kind+"/"+.metadata.name' "$T/out")" = "$MKIND/$M1" ] && ok $n || bad $n "rc=$RC $(both | head -5)"; }
n=out-yaml;          want $n && { k get "$MSING" "$M1" -n "$TENANT" -o yaml; [ $RC = 0 ] && grep -q "^apiVersion: $GV" "$T/out" && grep -q "^kind: $MKIND" "$T/out" && grep -q "^  name: $M1" "$T/out" && ok $n || bad $n "rc=$RC $(both | head -3)"; }
n=out-name;          want $n && { k get "$MACHINES" -n "$TENANT" -o name; [ $RC = 0 ] && grep -qx "$MSING.$GROUP/$M1" "$T/out" && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(head -1 "$T/out")"; }
n=out-jsonpath;      want $n && { k get "$MACHINES" -n "$TENANT" -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}'; [ $RC = 0 ] && grep -qx "$TENANT/$M2" "$T/out" && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=out-go-template;   want $n && { k get "$MSING" "$M1" -n "$TENANT" -o 'go-template={{.metadata.name}}'; [ "$(out)" = "$M1" ] && ok $n || bad $n "$(both)"; }
n=out-custom-columns; want $n && { k get "$MACHINES" -n "$TENANT" -o custom-columns=WHO:.metadata.name,WHERE:.metadata.namespace; [ $RC = 0 ] && head -1 "$T/out" | grep -Eq '^WHO +WHERE' && grep -Eq "^$M1 +$TENANT" "$T/out" && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=out-raw;           want $n && { k get --raw "$NSAPI/$MACHINES?limit=1"; [ $RC = 0 ] && [ "$(jq -r .kind "$T/out")" = "${MKIND}List" ] && ok $n || bad $n "rc=$RC $(both | head -c 200)"; }
n=subresource-status; want $n && { k get "$MSING" "$M1" -n "$TENANT" --subresource=status -o json; [ $RC = 0 ] && [ "$(jq -r '.kind+"/"+.metadata.name' "$T/out")" = "$MKIND/$M1" ] && [ "$(jq 'has("status")' "$T/out")" = true ] && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=subresource-status-table; want $n && { k get "$MSING" "$M1" -n "$TENANT" --subresource=status; [ $RC = 0 ] && grep -q "^$M1 " "$T/out" && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=subresource-unknown; want $n && { k get --raw "$NSAPI/$MACHINES/$M1/nosuchsub"; [ $RC = 1 ] && grep -q NotFound "$T/err" && ok $n || bad $n "rc=$RC $(both)"; }

# ---------------------------------------------------------------- 4 selectors
# cnt SELECTOR JQ: kubectl -l SELECTOR must give as many as jq finds
cnt() { local n=$1 sel=$2 q=$3 w; want "$n" || return 0; if [ -z "$LK" ]; then skip "$n" "no labels"; return 0; fi
  w=$(jq --arg k "$LK" --arg v "$LV" "[.items[]|(.metadata.labels // {}) as \$l|select($q)]|length" "$T/machines.json"); k get "$MACHINES" -n "$TENANT" -l "$sel" -o name
  [ $RC = 0 ] && [ "$(lines)" = "$w" ] && ok "$n" || bad "$n" "'$sel' gave $(lines), want $w; $(cat "$T/err")"; }
cnt label-eq       "$LK=$LV"                       '$l[$k]==$v'
cnt label-eqeq     "$LK==$LV"                      '$l[$k]==$v'
cnt label-ne       "$LK!=$LV"                      '$l[$k]!=$v'
cnt label-in       "$LK in ($LV,zzz-nope)"         '$l[$k]==$v'
cnt label-notin    "$LK notin ($LV, zzz-nope)"     '$l[$k]!=$v'
cnt label-exists   "$LK"                           '$l|has($k)'
cnt label-absent   "!$LK"                          '$l|has($k)|not'
cnt label-and      "$LK=$LV,zzz-nope/label notin (a)" '$l[$k]==$v'
cnt label-none     "zzz-nope=1"                    'false'
n=label-ne-absent-key; want $n && { k get "$MACHINES" -n "$TENANT" -l 'zzz-nope!=1' -o name; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "an absent key must match !=: got $(lines), want $N"; }
n=label-bad;         want $n && { s=$(c "$NSAPI/$MACHINES?labelSelector=a%20b%20c"); [ "$s" = 400 ] && [ "$(j .reason)" = BadRequest ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=field-name;        want $n && { k get "$MACHINES" -n "$TENANT" --field-selector "metadata.name=$M1" -o name; [ $RC = 0 ] && [ "$(out)" = "$MSING.$GROUP/$M1" ] && ok $n || bad $n "rc=$RC $(both)"; }
n=field-name-ne;     want $n && { k get "$MACHINES" -n "$TENANT" --field-selector "metadata.name!=$M1" -o name; [ $RC = 0 ] && [ "$(lines)" = $((N-1)) ] && ok $n || bad $n "rc=$RC $(lines) want $((N-1)) $(cat "$T/err")"; }
n=field-namespace;   want $n && { k get "$MACHINES" -A --field-selector "metadata.namespace=$TENANT" -o name; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && ok $n || bad $n "rc=$RC $(lines) $(cat "$T/err")"; }
n=field-and;         want $n && { k get "$MACHINES" -A --field-selector "metadata.namespace=$TENANT,metadata.name==$M2" -o name; [ $RC = 0 ] && [ "$(lines)" = 1 ] && ok $n || bad $n "rc=$RC $(lines)"; }
n=field-unsupported; want $n && { k get "$MACHINES" -n "$TENANT" --field-selector 'spec.nosuchfield=1'; [ $RC = 1 ] && grep -q 'Error from server (BadRequest)' "$T/err" && grep -q 'field label not supported' "$T/err" && ok $n || bad $n "rc=$RC $(both)"; }
n=field-bad;         want $n && { s=$(c "$NSAPI/$MACHINES?fieldSelector=justaword"); [ "$s" = 400 ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }

# ---------------------------------------------------------------- 5 chunks and resource versions
n=chunk-size;        want $n && { k get "$MACHINES" -n "$TENANT" --chunk-size=1 -o name; [ $RC = 0 ] && [ "$(lines)" = "$N" ] && [ "$(sort -u "$T/out" | wc -l)" = "$N" ] && ok $n || bad $n "rc=$RC $(lines) want $N"; }
n=chunk-size-table;  want $n && { c "$API/$MACHINES?limit=1" >/dev/null; tot=$(( $(j '.metadata.remainingItemCount // 0')+1 )); k get "$MACHINES" -A --chunk-size=$(( tot/3+1 )) --no-headers; [ $RC = 0 ] && [ "$(awk -v t="$TENANT" '$1==t' "$T/out" | wc -l)" = "$N" ] && ok $n || bad $n "rc=$RC"; }
n=chunk-raw;         want $n && { c "$NSAPI/$MACHINES?limit=1" >/dev/null; ct=$(j '.metadata.continue // ""'); r1=$(j .metadata.resourceVersion); rem=$(j '.metadata.remainingItemCount // ""'); a=$(j '.items|length'); s=$(c "$NSAPI/$MACHINES?limit=500&continue=$(jq -rn --arg x "$ct" '$x|@uri')"); r2=$(j .metadata.resourceVersion); b=$(j '.items|length')
   [ -n "$ct" ] && [ "$s" = 200 ] && [ "$a" = 1 ] && [ $((a+b)) = "$N" ] && [ "$r1" = "$r2" ] && { [ -z "$rem" ] || [ "$rem" = $((N-1)) ]; } && [ -z "$(j '.metadata.continue // ""')" ] && ok $n || bad $n "continue='$ct' $s sizes $a+$b rv $r1/$r2 remaining=$rem"; }
n=chunk-selector;    if want $n; then if [ -z "$LK" ]; then skip $n; else c "$API/$MACHINES?limit=1&labelSelector=$(jq -rn --arg x "$LK=$LV" '$x|@uri')" >/dev/null; [ -z "$(j '.metadata.remainingItemCount // ""')" ] && ok $n || bad $n "remainingItemCount must be left out when a selector is given"; fi; fi
n=chunk-bad-token;   want $n && { s=$(c "$NSAPI/$MACHINES?limit=1&continue=nonsense%21"); { [ "$s" = 400 ] || [ "$s" = 410 ]; } && [ "$(j .kind)" = Status ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=rv-zero;           want $n && { s=$(c "$NSAPI/$MACHINES?resourceVersion=0"); [ "$s" = 200 ] && [ "$(j '.items|length')" = "$N" ] && ok $n || bad $n "$s"; }
n=rv-not-older-than; want $n && { s=$(c "$NSAPI/$MACHINES?resourceVersion=$RV&resourceVersionMatch=NotOlderThan"); [ "$s" = 200 ] && [ "$(j ".metadata.resourceVersion|tonumber >= $RV")" = true ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=rv-too-large;      want $n && { s=$(c "$NSAPI/$MACHINES?resourceVersion=9007199254740991&resourceVersionMatch=NotOlderThan"); [ "$s" = 504 ] && [ "$(j .reason)" = Timeout ] && [ "$(j '.details.causes[0].reason')" = ResourceVersionTooLarge ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
n=rv-garbage;        want $n && { s=$(c "$NSAPI/$MACHINES?resourceVersion=abc"); { [ "$s" = 400 ] || [ "$s" = 422 ]; } && [ "$(j .kind)" = Status ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=rv-match-alone;    want $n && { s=$(c "$NSAPI/$MACHINES?resourceVersionMatch=Exact"); { [ "$s" = 422 ] || [ "$s" = 400 ]; } && [ "$(j .kind)" = Status ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=rv-object-le-list; want $n && { jq -e --arg rv "$RV" 'all(.items[]; (.metadata.resourceVersion|tonumber) <= ($rv|tonumber))' "$T/machines.json" >/dev/null && ok $n || bad $n "an object is newer than its list"; }

# ---------------------------------------------------------------- 6 negotiation
n=neg-table;         want $n && { s=$(c "$NSAPI/$MACHINES" -H "Accept: $TABLE"); [ "$s" = 200 ] && jq -e '.kind=="Table" and .apiVersion=="meta.k8s.io/v1" and (.metadata.resourceVersion|length)>0 and .columnDefinitions[0].name=="Name" and (.columnDefinitions|length) as $n|all(.columnDefinitions[]; has("name") and has("type") and has("format") and has("priority")) and all(.rows[]; (.cells|length)==$n and .object.kind=="PartialObjectMetadata" and (.object.metadata.name|length)>0)' "$T/body" >/dev/null && ok $n || bad $n "$s $(head -c 250 "$T/body")"; }
n=neg-table-include; want $n && { a=; for i in None Metadata Object; do c "$NSAPI/$MACHINES?limit=1&includeObject=$i" -H "Accept: $TABLE" >/dev/null; a="$a$(j '.rows[0].object.kind // "-"') "; done; [ "$a" = "- PartialObjectMetadata $MKIND " ] && ok $n || bad $n "$a"; }
n=neg-table-one;     want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H "Accept: $TABLE"); [ "$s" = 200 ] && [ "$(j '.kind+(.rows|length|tostring)')" = Table1 ] && ok $n || bad $n "$s"; }
n=neg-metadata;      want $n && { s=$(c "$NSAPI/$MACHINES" -H 'Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'); [ "$s" = 200 ] && [ "$(j .kind)" = PartialObjectMetadataList ] && [ "$(j '.items[0]|has("spec")')" = false ] && [ "$(j '.items[0].kind')" = PartialObjectMetadata ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
n=neg-metadata-one;  want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H 'Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'); [ "$s" = 200 ] && [ "$(j .kind)" = PartialObjectMetadata ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
n=neg-protobuf-fallback; want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H 'Accept: application/vnd.kubernetes.protobuf,application/json'); [ "$s" = 200 ] && [[ $(hdr content-type) == application/json* ]] && [ "$(j .metadata.name)" = "$M1" ] && ok $n || bad $n "$s $(hdr content-type)"; }
n=neg-protobuf-only; want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H 'Accept: application/vnd.kubernetes.protobuf'); [ "$s" = 406 ] && ok $n || bad $n "$s $(hdr content-type)"; }
n=neg-no-accept;     want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H 'Accept:'); [ "$s" = 200 ] && [ "$(j .kind)" = "$MKIND" ] && ok $n || bad $n "$s"; }
n=neg-star;          want $n && { s=$(c "$NSAPI/$MACHINES/$M1" -H 'Accept: application/json, */*'); [ "$s" = 200 ] && [ "$(j .kind)" = "$MKIND" ] && ok $n || bad $n "$s"; }
n=neg-table-order;   want $n && { s=$(c "$NSAPI/$MACHINES?includeObject=Metadata" -H 'Accept: application/json;g=meta.k8s.io;v=v1;as=Table, application/json'); [ "$s" = 200 ] && [ "$(j .kind)" = Table ] && ok $n || bad $n "$s $(j .kind)"; }
n=query-odd;         want $n && { s=$(c "$NSAPI/$MACHINES?&limit=1"); a=$s$(j '.items|length'); s=$(c "$NSAPI/$MACHINES?pretty=true&timeout=5s&bogus=1&labelSelector=&fieldSelector="); [ "$a" = 2001 ] && [ "$s" = 200 ] && [ "$(j '.items|length')" = "$N" ] && ok $n || bad $n "$a $s: an empty pair, unknown and empty parameters must be passed over"; }
n=neg-gzip;          want $n && { s=$(c "$API/$MACHINES" --compressed -H 'Accept: application/json'); [ "$s" = 200 ] && [ "$(j .kind)" = "${MKIND}List" ] && ok $n || bad $n "$s $(hdr content-encoding)"; }

# ---------------------------------------------------------------- 7 describe, explain, wait
n=describe;          want $n && { k describe "$MSING" "$M1" -n "$TENANT"; [ $RC = 0 ] && grep -Eq "^Name: +$M1" "$T/out" && grep -Eq "^Namespace: +$TENANT" "$T/out" && grep -Eq "^Kind: +$MKIND" "$T/out" && grep -q '^Events:' "$T/out" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=describe-all;      want $n && { k describe "$MACHINES" -n "$TENANT" -l "${LK:+$LK=$LV}"; [ $RC = 0 ] && [ "$(grep -c '^Name: ' "$T/out")" -ge 1 ] && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=describe-cluster-scoped; want $n && { k describe "$TENANTS" "$TENANT"; [ $RC = 0 ] && grep -Eq "^Name: +$TENANT" "$T/out" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=explain;           want $n && { k explain "$MACHINES"; [ $RC = 0 ] && grep -Eq "^KIND: +$MKIND" "$T/out" && grep -Eq '^ +spec' "$T/out" && grep -Eq '^ +status' "$T/out" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=explain-field;     want $n && { k explain "$MACHINES.metadata.name"; [ $RC = 0 ] && grep -Eq '^FIELD: name <string>' "$T/out" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=explain-recursive; want $n && { k explain "$MACHINES" --recursive; [ $RC = 0 ] && [ "$(lines)" -gt 12 ] && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=explain-tenant;    want $n && { k explain "$TENANTS"; [ $RC = 0 ] && grep -Eq '^KIND: +' "$T/out" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
n=explain-unknown;   want $n && { k explain "$MACHINES.spec.nosuchfieldxyz"; [ $RC = 1 ] && grep -q 'does not exist' "$T/err" && ok $n || bad $n "rc=$RC $(both | tail -3)"; }
CM=$(jq -r '[.items[]|select(any(.status.conditions[]?; .type=="Ready"))][0]|.metadata.name // ""' "$T/machines.json"); CS=$(jq -r --arg m "$CM" '.items[]|select(.metadata.name==$m)|.status.conditions[]|select(.type=="Ready").status' "$T/machines.json" 2>/dev/null)
n=wait-condition;    if want $n; then if [ -z "$CM" ]; then skip $n "no machine has a Ready condition"; else k wait --for=condition=Ready="$CS" "$MSING/$CM" -n "$TENANT" --timeout=10s; [ $RC = 0 ] && grep -q 'condition met' "$T/out" && ok $n || bad $n "rc=$RC $(both)"; fi; fi
n=wait-timeout;      want $n && { k wait --for=condition=NoSuchConditionXyz "$MSING/$M1" -n "$TENANT" --timeout=2s; [ $RC = 1 ] && grep -q 'timed out waiting' "$T/err" && ok $n || bad $n "rc=$RC $(both)"; }
n=wait-jsonpath;     want $n && { k wait --for=jsonpath='{.metadata.name}'="$M1" "$MSING/$M1" -n "$TENANT" --timeout=10s; [ $RC = 0 ] && ok $n || bad $n "rc=$RC $(both)"; }
n=wait-delete-absent; want $n && { k wait --for=delete "$MSING/no-such-machine-xyz" -n "$TENANT" --timeout=5s; [ $RC = 0 ] && ok $n || bad $n "rc=$RC $(both)"; }

# ---------------------------------------------------------------- 8 watch
# w QUERY SECONDS [curl args]: watch into $T/body
w() { local q=$1 t=$2; shift 2; : > "$T/body"; curl -sS -g -N -m "$t" "${CURLTLS[@]}" "${CURLAUTH[@]}" -D "$T/hdr" -o "$T/body" "$@" "$SERVER$NSAPI/$MACHINES?watch=true&$q" 2>"$T/cerr"; WRC=$?; WS=$(awk 'NR==1{print $2}' "$T/hdr"); }
n=watch-kubectl;     want $n && { KT=8 k get "$MACHINES" -n "$TENANT" -w; [ $RC = 124 ] && [ "$(lines)" -ge $((N+1)) ] && ok $n || bad $n "rc=$RC (124: still open after 8 s) lines=$(lines) $(cat "$T/err")"; }
n=watch-kubectl-one; want $n && { KT=8 k get "$MSING" "$M1" -n "$TENANT" -w -o name; [ $RC = 124 ] && [ "$(head -1 "$T/out")" = "$MSING.$GROUP/$M1" ] && ok $n || bad $n "rc=$RC $(both)"; }
n=watch-kubectl-events; want $n && { KT=8 k get "$MACHINES" -n "$TENANT" -w --output-watch-events; [ $RC = 124 ] && head -1 "$T/out" | grep -q '^EVENT ' && [ "$(grep -c '^ADDED ' "$T/out")" -ge "$N" ] && ok $n || bad $n "rc=$RC $(both | head -2)"; }
n=watch-timeout;     want $n && { t0=$(date +%s); w "resourceVersion=$RV&timeoutSeconds=2" 15; d=$(( $(date +%s)-t0 )); [ $WRC = 0 ] && [ "$WS" = 200 ] && [ $d -ge 1 ] && [ $d -le 8 ] && ok $n || bad $n "curl rc=$WRC status=$WS after ${d}s (want a clean end after 2 s)"; }
n=watch-headers-first; want $n && { w "resourceVersion=$RV&timeoutSeconds=30" 5; [ "$WS" = 200 ] && ok $n || bad $n "no response head within 5 s on a quiet watch"; }
n=watch-rv0-initial; want $n && { w "resourceVersion=0&timeoutSeconds=2" 15; [ "$(jq -rs '[.[]|select(.type=="ADDED")]|length' "$T/body")" -ge "$N" ] && jq -e -s --arg k "$MKIND" 'all(.[]; .object.kind==$k)' "$T/body" >/dev/null && ok $n || bad $n "resourceVersion=0 must begin with one ADDED for each object: $(head -c 200 "$T/body")"; }
n=watch-norv-initial; want $n && { w "timeoutSeconds=2" 15; [ "$(jq -rs '[.[]|select(.type=="ADDED")]|length' "$T/body")" -ge "$N" ] && ok $n || bad $n "$(head -c 200 "$T/body")"; }
n=watch-one-line-each; want $n && { w "resourceVersion=0&timeoutSeconds=1" 15; [ "$(wc -l < "$T/body")" = "$(jq -s length "$T/body")" ] && ok $n || bad $n "frames must be one line each (kube-rs reads by line)"; }
n=watch-field-selector; want $n && { w "resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name%3D$M1" 15; [ "$(jq -rs '[.[]|select(.type=="ADDED")|.object.metadata.name]|join(",")' "$T/body")" = "$M1" ] && ok $n || bad $n "$(head -c 200 "$T/body")"; }
n=watch-table;       want $n && { w "resourceVersion=0&timeoutSeconds=1" 15 -H "Accept: $TABLE"; jq -e -s 'length>0 and all(.[]; .object.kind=="Table" and (.object.rows|length)==1) and (.[0].object.columnDefinitions|length)>0' "$T/body" >/dev/null && ok $n || bad $n "$(head -c 250 "$T/body")"; }
n=watch-streaming-list; want $n && { w "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3" 15
   if [ "$WS" = 422 ] || [ "$WS" = 400 ] || jq -e -s '.[0].type=="ERROR" and .[0].object.code!=410 and .[0].object.code!=429' "$T/body" >/dev/null 2>&1; then grep -q '"kind": *"Status"' "$T/body" && [ "$STRICT" != 1 ] && ok "$n (refused: client-go falls back to a list)" || bad $n "$WS refused"; elif jq -e -s --argjson n "$N" --arg k "$MKIND" '([.[]|select(.type=="ADDED")]|length)>=$n and any(.[]; .type=="BOOKMARK" and .object.metadata.annotations["k8s.io/initial-events-end"]=="true" and .object.kind==$k and (.object.metadata.resourceVersion|length)>0)' "$T/body" >/dev/null; then ok $n; else bad $n "neither refused nor ended with the annotated BOOKMARK: informers of client-go 1.35+ hang; $(tail -c 200 "$T/body")"; fi; }
n=watch-old-rv;      want $n && { w "resourceVersion=1&timeoutSeconds=2" 15; if [ "$WS" = 200 ]; then if [ ! -s "$T/body" ] || jq -e -s 'any(.[]; .type=="ERROR")|not' "$T/body" >/dev/null; then ok "$n (still in the window)"; else jq -e -s '.[0].type=="ERROR" and .[0].object.code==410 and .[0].object.reason=="Expired" and .[0].object.kind=="Status"' "$T/body" >/dev/null && ok $n || bad $n "$(head -c 200 "$T/body")"; fi; else bad $n "status $WS: 410 must come as an ERROR event inside a 200 stream (kube-rs repeats forever otherwise)"; fi; }
n=watch-rv-garbage;  want $n && { w "resourceVersion=abc&timeoutSeconds=2" 15; { [ "$WS" = 400 ] || [ "$WS" = 422 ] || [ "$ORACLE$WS" = 1500 ]; } && [ "$(j .kind)" = Status ] && ok $n || bad $n "$WS $(head -c 150 "$T/body")"; }

n=watch-bool;        want $n && { s=$(c "$NSAPI/$MACHINES?watch=0"); a=$(j .kind); s=$(c "$NSAPI/$MACHINES?watch=false"); [ "$a" = "${MKIND}List" ] && [ "$(j .kind)" = "${MKIND}List" ] && ok $n || bad $n "watch=0 and watch=false must list"; }
n=watch-future-rv;   want $n && { w "resourceVersion=9007199254740991&timeoutSeconds=2" 15; { [ "$WS" = 200 ] && { [ ! -s "$T/body" ] || [ "$(jq -rs '.[0].type' "$T/body")" = ERROR ]; }; } && ok $n || bad $n "$WS: neither quiet nor an ERROR event inside a 200 stream (kube-rs repeats forever otherwise)"; }
if want watch-live; then if [ -z "$TOUCH" ]; then skip watch-live "no TOUCH"; skip watch-live-one "no TOUCH"; else export MACHINE=$M1
   for n in watch-live watch-live-one; do
     if [ $n = watch-live ]; then a=("$MACHINES" -w --output-watch-events); first=$((N+1)); else a=("$MSING" "$M1" -w -o name); first=1; fi
     : > "$T/out"; timeout 60 "$KUBECTL" get "${a[@]}" -n "$TENANT" >"$T/out" 2>"$T/err" </dev/null & p=$!
     until_lines "$first"; sleep 1; bash -c "$TOUCH" >/dev/null 2>"$T/touch"; until_lines $((first+1)); sleep 0.5; kill $p; wait $p 2>/dev/null
     if [ $n = watch-live ]; then grep -q "^MODIFIED .*$M1 " "$T/out" && ok $n || bad $n "$(tail -2 "$T/out"; cat "$T/touch")"; else [ "$(lines)" = 2 ] && ok $n || bad $n "$(lines) lines, want 2: the first live event is lost when resourceVersion=0 gives no initial ADDED $(cat "$T/touch")"; fi
   done; fi; fi

# ---------------------------------------------------------------- 9 authorization
n=can-i-list;        want $n && { k auth can-i list "$MACHINES.$GROUP" -n "$TENANT"; [ $RC = 0 ] && [ "$(out)" = yes ] && ok $n || bad $n "rc=$RC $(both)"; }
n=can-i-delete;      want $n && { k auth can-i delete "$MACHINES.$GROUP" -n "$TENANT"; [ $RC = 1 ] && grep -q '^no' "$T/out" && ok $n || bad $n "rc=$RC $(both)"; }
n=can-i-subresource; want $n && { k auth can-i get "$MACHINES.$GROUP" --subresource=status -n "$TENANT"; [ $RC = 0 ] && ok $n || bad $n "rc=$RC $(both)"; }
n=can-i-list-all;    want $n && { k auth can-i --list -n "$TENANT"; [ $RC = 0 ] && grep -Eq "^($MACHINES|\*)\.($GROUP|\*) " "$T/out" && ok $n || bad $n "rc=$RC $(both | head -3)"; }
n=whoami;            want $n && { k auth whoami; [ $RC = 0 ] && grep -q '^Username' "$T/out" && ok $n || bad $n "rc=$RC $(both | head -3)"; }
n=ssar-json;         want $n && { s=$(c /apis/authorization.k8s.io/v1/selfsubjectaccessreviews -X POST -H 'Content-Type: application/json' -d "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{\"namespace\":\"$TENANT\",\"verb\":\"watch\",\"group\":\"$GROUP\",\"resource\":\"$MACHINES\"}}}"); [ "$s" = 201 ] && [ "$(j .status.allowed)" = true ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
if want auth-; then n=auth-no-token; if [ -z "$TOKEN" ]; then skip auth-no-token "no TOKEN"; skip auth-bad-token "no TOKEN"; else
   s=$(CURLAUTH=(); c "$NSAPI/$MACHINES"); { [ "$s" = 401 ] || [ "$s" = 403 ]; } && [ "$(j .kind)" = Status ] && ok auth-no-token || bad auth-no-token "$s $(head -c 100 "$T/body")"
   s=$(CURLAUTH=(-H "Authorization: Bearer wrong-$$"); c "$NSAPI/$MACHINES"); [ "$s" = 401 ] && [ "$(j .kind+.reason 2>/dev/null || j '.kind')" != "" ] && [ "$(j .reason)" = Unauthorized ] && ok auth-bad-token || bad auth-bad-token "$s $(head -c 100 "$T/body")"; fi; fi
n=impersonation;     want $n && { s=$(c "$NSAPI/$MACHINES" -H 'Impersonate-User: somebody-else'); [ "$s" = 403 ] && ok $n || bad $n "$s: an Impersonate-User header must be refused, not passed over"; }

# ---------------------------------------------------------------- 10 writes are refused by the server, in words kubectl shows
mk() { jq -n --arg gv "$GV" --arg k "$MKIND" --arg n "$1" --arg t "$TENANT" '{apiVersion:$gv,kind:$k,metadata:{name:$n,namespace:$t,labels:{probe:"1"}},spec:{}}'; }
mk kubectl-acceptance-probe > "$T/new.json"; mk "$M1" > "$T/old.json"
refused write-create        create -f "$T/new.json"
refused write-apply         apply -f "$T/new.json"
refused write-apply-existing apply --dry-run=server -f "$T/old.json"
refused write-apply-ssa     apply --server-side -f "$T/new.json"
refused write-replace       replace --dry-run=server -f "$T/old.json"
refused write-patch         patch "$MSING" "$M1" -n "$TENANT" --type=merge --dry-run=server -p '{"metadata":{"labels":{"probe":"1"}}}'
refused write-label         label "$MSING" "$M1" -n "$TENANT" --dry-run=server probe=1
refused write-annotate      annotate "$MSING" "$M1" -n "$TENANT" --dry-run=server probe=1
refused write-delete        delete "$MSING" no-such-machine-xyz -n "$TENANT" --wait=false
refused write-delete-dry    delete "$MSING" "$M1" -n "$TENANT" --dry-run=server
n=write-delete-collection; want $n && { s=$(c "$NSAPI/$MACHINES?dryRun=All&labelSelector=zzz-nope%3D1" -X DELETE); { [ "$s" = 405 ] || [ "$s" = 403 ]; } && [ "$(j .kind)" = Status ] && ok $n || bad $n "$s $(head -c 150 "$T/body")"; }
n=write-status-body; want $n && { s=$(c "$NSAPI/$MACHINES" -X POST -H 'Content-Type: application/json' -d @"$T/new.json"); { [ "$s" = 405 ] && [ "$(j .reason)" = MethodNotAllowed ] || { [ "$s" = 403 ] && [ "$(j .reason)" = Forbidden ]; }; } && [ "$(j '.kind+.apiVersion+.status')" = Statusv1Failure ] && [ "$(j .code)" = "$s" ] && [ -n "$(j '.message // ""')" ] && ok $n || bad $n "$s $(head -c 200 "$T/body")"; }
n=diff;              want $n && { k diff -f "$T/old.json"; [ $RC -gt 1 ] && both | grep -Eq 'MethodNotAllowed|Forbidden' && ok $n || bad $n "rc=$RC $(both | tail -2)"; }
n=nothing-changed;   want $n && { c "$NSAPI/$MACHINES" >/dev/null; ! j '.items[].metadata.name' | grep -qx kubectl-acceptance-probe && [ "$(j --arg m "$M1" '.items[]|select(.metadata.name==$m)|.metadata.labels.probe // ""')" = "" ] && [ "$(j '.items|length')" = "$N" ] && ok $n || bad $n "a write went through, or the tenant changed meanwhile"; }

# ---------------------------------------------------------------- 11 proxy, namespaces, events
n=proxy;             if want $n; then timeout 20 "$KUBECTL" proxy --port=0 >"$T/proxy" 2>&1 & p=$!; PIDS+=($p); for _ in $(seq 60); do grep -q 'Starting to serve' "$T/proxy" && break; sleep 0.1; done; a=$(grep -oE '127\.0\.0\.1:[0-9]+' "$T/proxy"); s=$(curl -s -m 5 -o "$T/body" -w '%{http_code}' "http://$a$NSAPI/$MACHINES/$M1"); kill $p 2>/dev/null; wait $p 2>/dev/null; [ "$s" = 200 ] && [ "$(j .metadata.name)" = "$M1" ] && ok $n || bad $n "$s $(cat "$T/proxy")"; fi
n=namespaces;        want $n && { k get namespaces; if [ $RC = 0 ]; then grep -q "^$TENANT " "$T/out" && ok $n || bad $n "tenant $TENANT is not among the namespaces"; else skip $n "core namespaces are not served: k9s needs them; $(head -1 "$T/err")"; fi; }
n=namespace-one;     want $n && { s=$(c "/api/v1/namespaces/$TENANT"); a=$s; s=$(c /api/v1/namespaces/no-such-tenant-xyz); if [ "$a" = 200 ]; then [ "$s" = 404 ] && [ "$(j .details.kind)" = namespaces ] && ok $n || bad $n "absent: $s $(head -c 150 "$T/body")"; else skip $n "$a"; fi; }
n=events;            want $n && { s=$(c "/api/v1/namespaces/$TENANT/events?fieldSelector=involvedObject.name%3D$M1%2CinvolvedObject.namespace%3D$TENANT%2CinvolvedObject.kind%3D$MKIND%2CinvolvedObject.uid%3Dx&limit=500" -H 'Accept: application/json'); [ "$s" = 200 ] && [ "$(j .kind)" = EventList ] && ok $n || { [ "$s" = 404 ] && skip $n "events are not served: describe shows Events: <none>"; [ "$s" = 404 ] || bad $n "$s $(head -c 150 "$T/body")"; }; }
echo "$PASS passed, $FAIL failed, $SKIP skipped"
[ "$FAIL" = 0 ]
