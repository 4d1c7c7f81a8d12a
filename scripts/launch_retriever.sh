#!/usr/bin/env bash
# Starts the retrieval server and says when it is ready: bash scripts/launch_retriever.sh --help
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bash scripts/launch_retriever.sh INDEX_DIR [PORT] [--wait SECONDS] [--detach LOG] [-- FLAGS]

Starts the retrieval server on an index folder (made by `search-r1 prepare index`), waits until
/health answers 200, then stays in front of it: Ctrl-C or SIGTERM finishes the requests in flight
and ends it. PORT is 8000 when not given.

  --wait SECONDS  Give up when it is not ready by then (default 900).
  --detach LOG    Once ready, leave it in the background; its output goes to the file LOG and its
                  process id to LOG.pid.
  -- FLAGS        Handed to `python -m retrieval_server` (see its --help), e.g. -- --threads 2.

PYTHON names the interpreter; without it the project's .venv is used, else python3.
Exit code: the server's own (2 settings, 3 index or encoder, 4 address), or 124 after --wait.
TEXT
}

fail() {
  echo "launch_retriever: $1" >&2
  exit 2
}

positional=()
wait_seconds=900
log=""
while (($#)); do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --wait) wait_seconds="${2:?--wait needs a number of seconds}"; shift 2 ;;
    --detach) log="${2:?--detach needs a log file}"; shift 2 ;;
    --) shift; break ;;
    -*) fail "unknown option $1 (server flags go after --; see --help)" ;;
    *) positional+=("$1"); shift ;;
  esac
done
((${#positional[@]} >= 1 && ${#positional[@]} <= 2)) || { usage >&2; exit 2; }
[[ "$wait_seconds" =~ ^[0-9]+$ ]] || fail "--wait takes whole seconds, not '$wait_seconds'"
[[ -d "${positional[0]}" ]] || fail "no folder ${positional[0]}: build it with search-r1 prepare index"
index="$(cd "${positional[0]}" && pwd)"
port="${positional[1]:-8000}"
[[ "$port" =~ ^[0-9]+$ ]] && ((port > 0)) || fail "PORT must be a number above 0, not '$port'"
[[ -z "$log" || "$log" == /* ]] || log="$PWD/$log"

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
python="${PYTHON:-$root/.venv/bin/python}"
[[ -x "$python" ]] || python="$(command -v "$python" || command -v python3)" \
  || fail "no Python found: make .venv, or set PYTHON"

# Or another server's /health would be taken for this one's.
"$python" -c 'import socket, sys; socket.create_server(("", int(sys.argv[1]))).close()' "$port" \
  2>/dev/null || { echo "launch_retriever: port $port is in use" >&2; exit 4; }

url="http://127.0.0.1:$port"
command=("$python" -m retrieval_server --index "$index" --port "$port" "$@")
echo "Starting: ${command[*]}"
if [[ -n "$log" ]]; then
  nohup "${command[@]}" >"$log" 2>&1 </dev/null &
else
  "${command[@]}" &
fi
server=$!
stopping=0
trap 'stopping=1; kill -TERM "$server" 2>/dev/null || true' INT TERM

# One process that polls, since a new interpreter each second would load the machine.
health() {
  "$python" - "$port" "$wait_seconds" "$server" <<'PY'
import http.client, json, os, sys, time

port, seconds, server = map(int, sys.argv[1:])
begin, said = time.monotonic(), None
while time.monotonic() - begin < seconds:
    try:
        os.kill(server, 0)
    except ProcessLookupError:
        sys.exit(1)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/health")
        response = connection.getresponse()
        body = json.load(response)
        if response.status == 200:
            rows = body["rows"]
            what = "the web" if rows is None else f"{rows:,} passages"
            print(f"Ready after {time.monotonic() - begin:.0f} s: {what}")
            sys.exit(0)
        state = body.get("stage") or body.get("reason")
        if body.get("fraction") is not None:
            state += f" {int(10 * body['fraction']) * 10} %"
        if state != said:
            print(f"  {body['status']}: {state}", flush=True)
            said = state
    except (OSError, ValueError, KeyError, http.client.HTTPException):
        pass
    time.sleep(0.5)
sys.exit(124)
PY
}

ready=0
health &
wait $! || ready=$?
if ((ready == 124)); then
  echo "Not ready after $wait_seconds s: ending it. Give it longer with --wait." >&2
  kill -TERM "$server"
  wait "$server" || true
  exit 124
fi
if ((ready == 0)); then
  echo "Serving on $url (POST $url/retrieve, GET $url/health, GET $url/metrics)"
  if [[ -n "$log" ]]; then
    echo "$server" >"$log.pid"
    trap - INT TERM
    echo "In the background as process $server; end it with: kill $server"
    exit 0
  fi
fi

# A trapped signal interrupts the wait: then wait again, for the server's own code.
code=0
wait "$server" || code=$?
if ((code > 128 && stopping)); then
  code=0
  wait "$server" || code=$?
fi
exit "$code"
