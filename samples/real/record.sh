#!/usr/bin/env bash
# Records a real engine: llama.cpp's own server, a real model, the `openai` package as the client, tracerec between.
#
#   record.sh [--direct] [--bin DIR] [--python PYTHON] [--version TEXT] LLAMA_SERVER MODEL.gguf OUTDIR [OPTION...]
#
#   --direct          without the recorder: the client talks to the server itself
#   --bin DIR         where tracerec and traceanalyze are (default: build/bin beside the sources)
#   --python PYTHON   an interpreter that has the `openai` package (default: python3)
#   --version TEXT    what to note as the engine's version (default: what the server says)
#   OPTION...         handed to the server, behind its other options
#
# OUTDIR must not exist. It gets server.log, server-slots.log (its lines about requests), client.ndjson, metrics.txt,
# slots.json, about.txt, compare.txt and, with the recorder, sample.trc, recorder.log, check.txt, requests.ndjson,
# report.txt. Everything is on the loopback, on free ports, and ends by process id.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
direct=0 bin=$here/../../build/bin python=python3 version=
while [[ ${1:-} == --* ]]; do
  case $1 in
  --direct) direct=1; shift ;;
  --bin) bin=$2; shift 2 ;;
  --python) python=$2; shift 2 ;;
  --version) version=$2; shift 2 ;;
  *) echo "record.sh: unknown option $1; see the head of this file" >&2; exit 2 ;;
  esac
done
if [[ $# -lt 3 ]]; then
  echo "record.sh: needs LLAMA_SERVER MODEL.gguf OUTDIR; see the head of this file" >&2
  exit 2
fi
server=$(realpath "$1") model=$(realpath "$2")
mkdir "$3"
out=$(realpath "$3")
shift 3
# Absolute from here on, since the folder changes below; -s keeps a virtual environment's python a link.
bin=$(realpath -m "$bin")
[[ $python != */* ]] || python=$(realpath -s "$python")
name=$(basename "$model" .gguf)
[[ -n $version ]] ||
  version=$("$server" --version 2>&1 | sed -n 's/^version: *\([^ ]*\).*commit \([0-9a-f]*\).*/\1+\2/p')

read -r port_server port_proxy < <("$python" - <<'PY'
import socket
both = [socket.socket(), socket.socket()]
for s in both:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in both))
PY
)
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

pid_server='' pid_recorder='' pid_client=''
stop() { # PID SIGNAL: ask, wait 30 s, insist
  [[ -n $1 ]] || return 0
  kill "-$2" "$1" 2>/dev/null || return 0
  for _ in $(seq 300); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  echo "record.sh: process $1 did not end by SIG$2 in 30 s; killed" >&2
  kill -KILL "$1"
}
trap 'stop "$pid_client" TERM; stop "$pid_recorder" INT; stop "$pid_server" TERM' EXIT

client_port=$port_server
if [[ $direct -eq 0 ]]; then
  client_port=$port_proxy
  "$bin/tracerec" --proxy "127.0.0.1:$port_proxy" --upstream "127.0.0.1:$port_server" --name llamacpp-sample \
    --note "engine=llama.cpp-$version" --note "model=$name" --note slots=4 --note speculation=ngram-simple \
    -o "$out/sample.trc" 2>"$out/recorder.log" &
  pid_recorder=$!
  for _ in $(seq 100); do
    grep -q 'listening on' "$out/recorder.log" && break
    kill -0 "$pid_recorder" 2>/dev/null || break
    sleep 0.1
  done
  grep -q 'listening on' "$out/recorder.log" || {
    echo "record.sh: the recorder did not start; see $out/recorder.log" >&2
    exit 1
  }
fi

# The client starts before the server: the first request meets a refused connection, then "loading", and is retried.
"$python" "$here/drive.py" --base-url "http://127.0.0.1:$client_port" --log "$out/client.ndjson" --model "$name" &
pid_client=$!
for _ in $(seq 300); do # it makes its log right before the first request
  [[ ! -e $out/client.ndjson ]] || break
  sleep 0.1
done
sleep 0.3
# Run from the model's folder, so that the log names the file and no path.
cd "$(dirname "$model")"
"$server" -m "$(basename "$model")" --alias "$name" --host 127.0.0.1 --port "$port_server" -c 4096 -np 4 -t 2 \
  --spec-type ngram-simple --spec-ngram-simple-size-n 6 --spec-ngram-simple-size-m 12 --metrics --slots \
  --log-timestamps --log-prefix --log-colors off -lv 4 --offline "$@" >"$out/server.log" 2>&1 &
pid_server=$!
cd "$out"

status=0
wait -n "$pid_client" "$pid_server" || status=$?
if ! kill -0 "$pid_server" 2>/dev/null; then
  echo "record.sh: the server ended by itself; see $out/server.log" >&2
  exit 1
fi
pid_client=''
"$python" - "http://127.0.0.1:$port_server" <<'PY'
import sys, urllib.request
for path, name in (("/metrics", "metrics.txt"), ("/slots", "slots.json")):
    with urllib.request.urlopen(sys.argv[1] + path) as answer, open(name, "wb") as out:
        out.write(answer.read())
PY
if [[ -n $pid_recorder ]]; then
  stop "$pid_recorder" INT
  wait "$pid_recorder" || status=$?
  pid_recorder=''
fi
stop "$pid_server" TERM
pid_server=''
grep -E 'processing task|cached n_tokens|eval time|draft acceptance|stop processing|send_error' \
  server.log >server-slots.log
{
  echo "engine llama.cpp $version"
  echo "model $name $(sha256sum "$model" | cut -d' ' -f1)"
  echo "openai $("$python" -c 'import openai; print(openai.__version__)'), Python $("$python" -V | cut -d' ' -f2)"
  echo "$(uname -s) $(uname -r) $(uname -m), $(nproc) processors"
} >about.txt

if [[ $direct -eq 0 ]]; then
  "$bin/traceanalyze" check sample.trc >check.txt 2>&1 || status=$?
  "$bin/traceanalyze" requests sample.trc --format ndjson >requests.ndjson || status=$?
  "$bin/traceanalyze" report sample.trc >report.txt || status=$?
  "$python" "$here/compare.py" --requests requests.ndjson --client client.ndjson --server server-slots.log \
    --metrics metrics.txt >compare.txt || status=$?
else
  "$python" "$here/compare.py" --client client.ndjson --server server-slots.log --metrics metrics.txt >compare.txt ||
    status=$?
fi
echo "record.sh: kept in $out, exit $status"
exit "$status"
