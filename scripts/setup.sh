#!/usr/bin/env bash
# Makes the working copy ready: system packages, .venv, the locked Python packages, the project itself.
#
#   scripts/setup.sh         all packages: those of users, the tests, the linters
#   scripts/setup.sh users   only what `make run` and `make demo` need
#
# PYTHON=python3.12 picks an interpreter. Leaves .venv with a stamp per set of packages that names what it was
# made from. When the stamp fits it does nothing, without a network call. It never asks for a password: without
# root it prints the one command that is missing and stops.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=.venv
case "${1:-}" in
    users) LOCKS=(requirements.lock) STAMP=$VENV/.spak-setup-users ;;
    "") LOCKS=(requirements.lock requirements-dev.lock) STAMP=$VENV/.spak-setup ;;
    *) echo "usage: scripts/setup.sh [users]" >&2; exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
stop() {
    say "$1"
    shift
    [ $# -eq 0 ] || printf '\n    %s\n\n' "$@" >&2
    exit 1
}
works() { "$@" >/dev/null 2>&1 </dev/null; }

# ---- system packages -----------------------------------------------------------------------------------

# The package for each missing program, by the names of the distribution at hand.
missing_programs() {
    local pair
    for pair in bwrap:bubblewrap gcc:gcc make:make setpriv:util-linux prlimit:util-linux; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair#*:}"
    done
    # gcc does not bring the C library's headers along.
    if ! command -v gcc >/dev/null ||
        { [ ! -e "$STAMP" ] && ! gcc -E -x c - <<<'#include <stdio.h>' >/dev/null 2>&1; }; then
        if command -v dnf >/dev/null; then echo glibc-devel
        elif command -v pacman >/dev/null; then echo glibc
        else echo libc6-dev; fi
    fi
}

install_command() {
    if command -v apt-get >/dev/null; then echo "apt-get install -y $*"
    elif command -v dnf >/dev/null; then echo "dnf install -y $*"
    elif command -v pacman >/dev/null; then echo "pacman -S --needed $*"
    elif command -v zypper >/dev/null; then echo "zypper install -y $*"
    fi
}

# Install packages, or say how and stop.
need_packages() {
    local command
    command=$(install_command "$@")
    [ -n "$command" ] || stop "these programs are missing, install them first: $*"
    if [ "$(id -u)" != 0 ]; then
        stop "system packages are missing; install them, then run make again:" "sudo $command"
    fi
    if ! command -v apt-get >/dev/null; then
        stop "system packages are missing; install them, then run make again:" "$command"
    fi
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; } </dev/null >"$LOG" 2>&1 || {
        tail -n 20 "$LOG" >&2
        stop "apt could not install them (its words are above); fix that, then run:" "apt-get update && $command"
    }
}

LOG=$(mktemp)
trap 'rm -f "$LOG"' EXIT

if [ "$(uname -s)" = Linux ]; then
    mapfile -t PACKAGES < <(missing_programs | sort -u)
    [ ${#PACKAGES[@]} -eq 0 ] || need_packages "${PACKAGES[@]}"
else
    say "runs need Linux (bubblewrap); here the language tools and the ledger tools work"
fi

# ---- Python --------------------------------------------------------------------------------------------

recent() { works "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if command -v "$name" >/dev/null && recent "$name"; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
}

fingerprint() { # fingerprint LOCK...
    { pwd; cat "$@" pyproject.toml scripts/setup.sh; } | cksum
}

stamped() { [ -e "$1" ] && [ "$(cat "$1")" = "$(fingerprint "${@:2}")" ]; }

# A complete set-up serves users too.
if [ -x $VENV/bin/python ] && recent $VENV/bin/python &&
    { stamped $STAMP "${LOCKS[@]}" || stamped $VENV/.spak-setup requirements.lock requirements-dev.lock; }; then
    exit 0
fi

SYSTEM_PYTHON=$(find_python)
if [ -z "$SYSTEM_PYTHON" ]; then
    [ -z "${PYTHON:-}" ] || stop "PYTHON=$PYTHON is not Python 3.11 or later"
    command -v apt-get >/dev/null || stop "Python 3.11 or later is needed and was not found"
    need_packages python3 python3-venv
    SYSTEM_PYTHON=$(find_python)
    [ -n "$SYSTEM_PYTHON" ] || stop "this system's python3 is older than 3.11; install a newer one, then run:" \
        "make setup PYTHON=python3.12"
fi

need_venv() {
    works "$SYSTEM_PYTHON" -c 'import ensurepip, venv' && return
    command -v apt-get >/dev/null || stop "Python's venv and ensurepip modules are missing"
    need_packages "python$("$SYSTEM_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
}

# The package index that pip is configured for, in uv's words, so that mirrors work for both.
follow_pip() { # follow_pip PYTHON
    local key value
    while IFS='=' read -r key value; do
        value=${value#\'}
        value=${value%\'}
        value=${value//\\n/ }
        case "${key##*.}" in
            index-url) export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$value}" ;;
            extra-index-url) export UV_INDEX="${UV_INDEX:-$value}" UV_INDEX_STRATEGY=unsafe-best-match ;;
            find-links) export UV_FIND_LINKS="${UV_FIND_LINKS:-${value// /,}}" ;;
            cert) export SSL_CERT_FILE="${SSL_CERT_FILE:-$value}" ;;
        esac
    done < <("$1" -m pip --disable-pip-version-check config list 2>/dev/null)
}

# A pyenv shim may exist without a uv to run: start it instead of looking for it.
export UV_PYTHON_DOWNLOADS=never
UV=""
if works uv --version; then
    UV=uv
elif works .uv/bin/uv --version; then
    UV=.uv/bin/uv
    follow_pip .uv/bin/python
else
    need_venv
    say "fetching uv, the installer, into .uv"
    if "$SYSTEM_PYTHON" -m venv .uv >"$LOG" 2>&1 &&
        .uv/bin/python -m pip --disable-pip-version-check --no-input install -q --no-compile \
            --require-hashes --only-binary :all: -r requirements-uv.lock >"$LOG" 2>&1 </dev/null &&
        works .uv/bin/uv --version; then
        UV=.uv/bin/uv
        follow_pip .uv/bin/python
    else
        say "uv could not be fetched ($(grep -m 1 -i error "$LOG" || echo unknown)); using pip, which takes longer"
    fi
fi

# A folder that was moved or copied holds scripts that start another folder's Python.
if [ -e $VENV ] && { ! recent $VENV/bin/python || ! grep -qsF "$PWD/$VENV" $VENV/bin/activate; }; then
    say "making .venv anew (this folder was moved, or its Python is gone)"
    rm -rf $VENV
fi

if [ ! -e $VENV ]; then
    say "creating .venv, $("$SYSTEM_PYTHON" --version)"
    if [ -n "$UV" ]; then
        "$UV" venv -q --python "$SYSTEM_PYTHON" $VENV
    else
        need_venv
        "$SYSTEM_PYTHON" -m venv $VENV
    fi
fi

ASKED=()
for name in "${LOCKS[@]}"; do ASKED+=(-r "$name"); done
COUNT=$(cat "${LOCKS[@]}" | grep -c '^[^ ]')

# pip's own words, shortened to a line a package; a terminal sees them in one place.
progress() {
    local line done=0
    while IFS= read -r line; do
        case "$line" in
            Collecting\ * | Processing\ *)
                done=$((done + 1))
                line=${line#* }
                line=${line##*/}
                if [ -t 2 ]; then printf '\r\033[Ksetup: %d of %d  %s' "$done" "$COUNT" "${line%% *}" >&2
                elif [ $((done % 20)) = 0 ]; then say "$done of $COUNT packages fetched"; fi
                ;;
            Installing\ collected*)
                [ ! -t 2 ] || printf '\r\033[K' >&2
                say "unpacking $done packages"
                ;;
        esac
    done
}

# On a terminal uv draws its progress; a log gets its totals without the list of packages.
with_uv() {
    local install=("$UV" pip install --python $VENV/bin/python --require-hashes "${ASKED[@]}")
    { if [ -t 2 ]; then "${install[@]}"; else "${install[@]}" 2> >(grep -v '^ [-+~]' >&2); fi; } &&
        "$UV" pip install -q --python $VENV/bin/python --no-deps --no-build-isolation --no-index -e .
}

with_pip() {
    works $VENV/bin/python -m pip --version || $VENV/bin/python -m ensurepip >/dev/null
    local pip=($VENV/bin/python -m pip --disable-pip-version-check --no-input install --no-compile)
    "${pip[@]}" --progress-bar off --require-hashes "${ASKED[@]}" | progress &&
        "${pip[@]}" -q --no-deps --no-build-isolation --no-index -e .
}

say "installing $COUNT locked packages"
if [ "$UV" = .uv/bin/uv ]; then
    with_uv || { say "uv could not install them; trying pip"; with_pip; }
elif [ -n "$UV" ]; then
    with_uv
else
    with_pip
fi

fingerprint "${LOCKS[@]}" >$STAMP
say "done in $SECONDS s: $($VENV/bin/python --version) in $VENV"
