#!/usr/bin/env bash
# Makes the lock files from pyproject.toml; needs uv and the package index. Versions stay unless UPGRADE=1.
#
#   requirements.lock      what users need: the project, the platform, the programs that examples start
#   requirements-dev.lock  what `make setup` adds: the tests, the linters, the local model server
#   requirements-telemetry.lock  what the extra `telemetry` adds to the first, for who wants it
#   requirements-uv.lock   uv itself, for machines that have none
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lock() { # lock OUTPUT ARGUMENT...
    local output=$1
    shift
    uv pip compile -q ${UPGRADE:+--upgrade} "$@" --generate-hashes --universal --python-version 3.11 \
        --no-header --no-annotate --no-emit-index-url -o "$output"
}

# The entries of the second file that are not in the first.
added() {
    awk '
        /^[^ ]/ { entry = $0; sub(/ *\\$/, "", entry); keep = FNR == NR || !(entry in users) }
        FNR == NR { users[entry] = 1; next }
        keep { print }
    ' "$1" "$2"
}

cat requirements.lock requirements-dev.lock >"$work/all.lock" 2>/dev/null || true
lock requirements.lock pyproject.toml --extra platform --extra checks --extra mcp --extra build
lock "$work/all.lock" pyproject.toml --all-extras -c requirements.lock
added requirements.lock "$work/all.lock" >requirements-dev.lock
lock "$work/telemetry.lock" pyproject.toml --extra platform --extra checks --extra mcp --extra build --extra telemetry -c "$work/all.lock"
added requirements.lock "$work/telemetry.lock" >requirements-telemetry.lock
echo uv >"$work/uv.in"
lock requirements-uv.lock "$work/uv.in"
