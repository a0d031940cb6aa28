# What the scripts of this directory share; sourced by each as its first act.
#
# A script prints one PASS line and exits with 0, or prints what it saw and exits with another
# code. It runs under a deadline, in a directory of its own that is removed at the end, with every
# process that it started. The examples are taken from $CARGO_TARGET_DIR (./target if unset),
# directory debug or $PROFILE, as plain `cargo test` left them.
set -euo pipefail
[ -n "${INTEROP_UNDER_DEADLINE:-}" ] ||
    INTEROP_UNDER_DEADLINE=1 exec timeout --kill-after=5 "${DEADLINE:-180}" "$0" "$@"

repository=$(cd "$(dirname "$0")/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$repository/target}")
examples=$target/${PROFILE:-debug}/examples
work=$(mktemp -d)
started=()
cd "$work"

finish() {
    local code=${1:-$?}
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    [ "$code" = 0 ] || { tail -n 30 "$work"/*.log >&2 || true; echo "FAIL $(basename "$0")" >&2; }
    rm -rf "$work"
}
trap finish EXIT

fail() {
    echo "$1" >&2
    exit 1
}

# need COMMAND...: installs each, by its own name, where it is missing.
need() {
    local command
    for command; do
        command -v "$command" >/dev/null || apt-get install -y -q "$command" >install.log 2>&1
    done
}

# start LOG PATTERN COMMAND...: runs it in the background and waits for a line of its log that
# matches PATTERN, a sed expression whose first group is left in $address. Its id is left in $!.
start() {
    local log=$1 pattern=$2
    shift 2
    : >"$log"
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
    for _ in $(seq 100); do
        address=$(sed -nE "s|.*$pattern.*|\1|p" "$log" | head -n 1)
        [ -z "$address" ] || return 0
        kill -0 $! 2>/dev/null || fail "$1 ended at once"
        sleep 0.1
    done
    fail "$1 does not listen"
}

# certificate KEY_OPTIONS...: ca.pem, and cert.pem with key.pem for localhost, signed by it.
certificate() {
    openssl req -x509 -nodes "$@" -keyout ca.key -out ca.pem -days 2 -subj "/CN=interop" \
        -addext basicConstraints=critical,CA:TRUE >openssl.log 2>&1
    openssl req -nodes "$@" -keyout key.pem -out request.pem -subj "/CN=localhost" \
        >>openssl.log 2>&1
    openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
        -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out cert.pem \
        >>openssl.log 2>&1
}

ECDSA=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1)
RSA=(-newkey rsa:2048)

# files: one of a byte, one of exactly a record, one of many records.
files() {
    mkdir -p "$1"
    head -c 1 /dev/urandom >"$1/byte"
    head -c 16384 /dev/urandom >"$1/record"
    head -c 3000000 /dev/urandom >"$1/many"
}
