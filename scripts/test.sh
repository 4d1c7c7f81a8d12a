#!/usr/bin/env bash
# Sets up the environment and runs every check that needs no GPU.
# Usage: bash scripts/test.sh [--fast]   (--fast leaves out the end-to-end tests)
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  "" | --fast) ;;
  -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
  *) echo "test: unknown argument $1; give --fast or nothing" >&2; exit 2 ;;
esac
bash scripts/setup.sh cpu
unset PYTHONDONTWRITEBYTECODE  # hundreds of processes share what the first has compiled

echo "test: format, lint and types (under a minute)"
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/mypy

echo "test: unit tests, without torch (over a minute)"
.venv/bin/pytest -q -n auto --dist worksteal -m "not slow and not gpu"
[ "${1:-}" != --fast ] || exit 0

echo "test: slow unit tests, and beside them end-to-end tests with real verl, Ray, FSDP2, vLLM and a"
echo "test: real server (about 25 minutes); a training takes up to 8 GiB, the others up to 4"
units=$(mktemp)
.venv/bin/pytest -v -m "slow and not gpu" --ignore tests/e2e >"$units" 2>&1 &
failed=0
.venv/bin/pytest -v -m "slow and not gpu" tests/e2e || failed=$?
wait $! || failed=$?
cat "$units"
exit "$failed"
