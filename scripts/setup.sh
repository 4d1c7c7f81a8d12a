#!/usr/bin/env bash
# Creates the environment .venv from the pinned requirements, or reuses it if it is up to date.
# Usage: bash scripts/setup.sh [cpu|gpu]   (sourced by nothing: other scripts run it)
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-cpu}
case $kind in -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;; esac
requirements=requirements/$kind.txt
[ -f "$requirements" ] || { echo "setup: no $requirements; give cpu or gpu" >&2; exit 2; }

fingerprint=$(cat "$requirements" requirements/bootstrap.txt pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1)
stamp=.venv/.search-r1-$kind
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$fingerprint" ]; then
  exit 0
fi

find_python() {
  local name
  for name in python3.11 python3 python; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      echo "$name"
      return
    fi
  done
  echo "setup: Python 3.11 is needed and was not found; install it (Debian: apt install python3.11 python3.11-venv)" >&2
  exit 2
}

python=$(find_python)
echo "setup: installing the pinned packages of $requirements into .venv (about 7 GB; 3 to 10 minutes the first time)"
started=$SECONDS
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/bootstrap.txt
# Every package is pinned, so nothing is left to resolve. Compiled once: a run starts ten processes,
# and where PYTHONDONTWRITEBYTECODE is set each would compile torch and verl anew.
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --compile-bytecode -r "$requirements"
if [ "$kind" = gpu ]; then  # built here, against the torch that was just installed
  .venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -r requirements/flash-attn.txt
fi
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps -e .
echo "$fingerprint" > "$stamp"
echo "setup: done in $((SECONDS - started)) s"
