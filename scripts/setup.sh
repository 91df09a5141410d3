#!/usr/bin/env bash
# Makes the working copy ready: system packages, .venv, the locked Python packages, the project itself.
#
# Takes nothing (PYTHON=python3.12 picks an interpreter); gives .venv with a stamp that names what it was made
# from. When the stamp fits it does nothing, without a network call. It never asks for a password: without
# root it prints the one command that is missing and stops.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=.venv
STAMP=$VENV/.spak-setup

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
        stop "apt could not install them (its words are above); mend that, then run:" "apt-get update && $command"
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

fingerprint() {
    { pwd; cat requirements.lock pyproject.toml scripts/setup.sh; } | cksum
}

if [ -x $VENV/bin/python ] && [ -e $STAMP ] && [ "$(cat $STAMP)" = "$(fingerprint)" ] && recent $VENV/bin/python; then
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

# A pyenv shim may exist without a uv behind it: ask it, do not look for it.
export UV_PYTHON_DOWNLOADS=never
UV=""
if works uv --version; then UV=uv; fi

# A folder that was moved or copied holds scripts that start another folder's Python.
if [ -e $VENV ] && { ! recent $VENV/bin/python || ! grep -qsF "$PWD/$VENV" $VENV/bin/activate; }; then
    say "making .venv anew (this folder was moved, or its Python is gone)"
    rm -rf $VENV
fi

if [ ! -e $VENV ]; then
    if [ -n "$UV" ]; then
        say "making .venv with uv, $("$SYSTEM_PYTHON" --version)"
        uv venv -q --python "$SYSTEM_PYTHON" $VENV
    else
        if ! works "$SYSTEM_PYTHON" -c 'import ensurepip, venv'; then
            VERSION=$("$SYSTEM_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
            command -v apt-get >/dev/null || stop "Python's venv and ensurepip modules are missing"
            need_packages "python$VERSION-venv"
        fi
        say "making .venv with venv and pip, $("$SYSTEM_PYTHON" --version) (uv would be faster)"
        "$SYSTEM_PYTHON" -m venv $VENV
    fi
fi

say "installing the locked packages"
if [ -n "$UV" ]; then
    uv pip install -q --python $VENV/bin/python --require-hashes -r requirements.lock
    uv pip install -q --python $VENV/bin/python --no-deps --no-build-isolation --no-index -e .
else
    works $VENV/bin/python -m pip --version || $VENV/bin/python -m ensurepip >/dev/null
    pip() { $VENV/bin/python -m pip --disable-pip-version-check --no-input -qq "$@"; }
    pip install --require-hashes -r requirements.lock
    pip install --no-deps --no-build-isolation --no-index -e .
fi

fingerprint >$STAMP
say "done: $($VENV/bin/python --version) in $VENV"
