#!/usr/bin/env bash
# A Docker engine of its own for tests: no bridge, no firewall rules, nothing of the system's engine touched.
#
#   scripts/docker-engine.sh start FOLDER   starts one below the folder; says how to reach it
#   scripts/docker-engine.sh stop FOLDER    ends the one that was started there, and removes its data
#
# Needs root and dockerd; where one of them is missing, or the kernel does not let an engine run, it says why and
# ends with 1. A runsc that is installed becomes a second runtime.
set -euo pipefail

WAIT_S=60

stop() { echo "docker-engine: $1" >&2; exit 1; }

start() {
  local folder=$1 driver runtimes='' tries
  [ "$(id -u)" = 0 ] || stop "only root can start an engine"
  command -v dockerd >/dev/null || stop "dockerd is not installed: apt-get install -y docker.io"
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  if command -v runsc >/dev/null; then
    runtimes='"runtimes": {"runsc": {"path": "'$(command -v runsc)'", "runtimeArgs": ["--network=none", "--platform=ptrace"]}}'
  fi
  echo "{$runtimes}" >"$folder/daemon.json"
  for driver in overlay2 vfs; do
    setsid dockerd --config-file "$folder/daemon.json" --data-root "$folder/data" --exec-root "$folder/exec" \
      --pidfile "$folder/pid" --host "unix://$folder/docker.sock" --storage-driver "$driver" \
      --iptables=false --ip6tables=false --bridge=none --shutdown-timeout 5 \
      </dev/null >"$folder/log" 2>&1 &
    local pid=$!
    for ((tries = 0; tries < 5 * WAIT_S; tries++)); do
      if [ -S "$folder/docker.sock" ] && answers "$folder/docker.sock"; then
        echo "DOCKER_HOST=unix://$folder/docker.sock"
        return
      fi
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.2
    done
    finish "$folder"
  done
  tail -n 5 "$folder/log" >&2
  stop "the engine does not run on this machine (its last words are above)"
}

answers() {
  python3 - "$1" <<'EOF' 2>/dev/null
import socket, sys
with socket.socket(socket.AF_UNIX) as engine:
    engine.settimeout(5)
    engine.connect(sys.argv[1])
    engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
    sys.exit(b"200 OK" not in engine.recv(100))
EOF
}

# End the engine of the folder, and wait until it has ended.
finish() {
  local pid tries
  [ -s "$1/pid" ] || return 0
  pid=$(cat "$1/pid")
  kill "$pid" 2>/dev/null || true
  for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$1/pid"
}

clear_away() {
  [ -e "$1/daemon.json" ] || stop "no engine was started in $1"
  finish "$1"
  local mount
  for mount in $(awk -v at="$(cd "$1" && pwd)/" 'index($2, at) == 1 {print $2}' /proc/mounts | sort -r); do
    umount "$mount" 2>/dev/null || true
  done
  rm -rf "$1"
}

case "${1:-}:${2:-}" in
  start:?*) start "$2" ;;
  stop:?*) clear_away "$2" ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
