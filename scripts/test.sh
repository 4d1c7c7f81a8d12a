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

slow() { .venv/bin/pytest -v --durations 5 -m "slow and not gpu" "$@"; }

# A start of verl, Ray or vLLM keeps one core busy: two lanes fill two cores. Ray's workers are as
# nice as the rest, which would starve them.
export RAY_worker_niceness=0
recipes=(tests/e2e/test_recipes.py tests/e2e/test_suite.py)
echo "test: end-to-end tests with real verl, Ray, FSDP2, vLLM and a real server, and beside them slow"
echo "test: unit tests, then the other end-to-end tests (about 25 minutes); a training takes up to"
echo "test: 8 GiB, the others up to 4, two run at a time"
beside=$(mktemp)
{
  units=0
  slow tests --ignore tests/e2e || units=$?
  slow "${recipes[@]}" && exit "$units"
} >"$beside" 2>&1 &
failed=0
slow tests/e2e "${recipes[@]/#/--ignore=}" || failed=$?
wait $! || failed=$?
cat "$beside"
exit "$failed"
