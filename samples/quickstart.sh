#!/bin/bash
# From a fresh Debian 12 to a first report, in one command: installs what is missing, builds, records half a minute
# of mixed load on a simulated engine, and prints what the recording says. Everything stays on the loopback.
#
#   samples/quickstart.sh [SECONDS]      how long to send load, 30 when not said
set -eu

seconds=${1:-30}
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/samples/packages.sh"
bin=$root/build/bin
server_pid=
recorder_pid=
load_pid=

say() { printf '\n== %s\n' "$*"; }

die() {
    printf 'quickstart: %s\n' "$*" >&2
    exit 1
}

case $seconds in
'' | *[!0-9]* | 0*) die "'$seconds' is no number of seconds; usage: samples/quickstart.sh [SECONDS]" ;;
esac

# Only what we started, by its number. The order lets the recorder seal its file before its upstream goes.
cleanup() {
    for pid in $load_pid $recorder_pid $server_pid; do
        kill -INT "$pid" 2>/dev/null || continue
        wait "$pid" 2>/dev/null || true
    done
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The tests' packages too: the build folder made here is the ordinary one, tests included.
install_packages() {
    if ! command -v apt-get >/dev/null; then
        echo "quickstart: no apt-get here; it takes what Debian calls ${BUILD_PACKAGES[*]} ${TEST_PACKAGES[*]}" >&2
        return 0
    fi
    say "Checking Debian's packages for the build; what is missing is installed with apt-get"
    install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" || die "apt-get could not install them; as root, or with sudo, it can"
}

build() {
    log=$root/build/quickstart-build.log
    say "Building in $root/build"
    mkdir -p "$root/build"
    if ! {
        cmake -S "$root" -B "$root/build" &&
            cmake --build "$root/build" --target tracerec traceanalyze simserve simload -j "$(nproc)"
    } >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die "the build failed; all of its output is in $log"
    fi
}

# A port that nobody listens on, from 8001 up.
free_port() {
    port=8001
    while cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '{ print $2 }' | grep -q ":$(printf '%04X' $port)\$"; do
        port=$((port + 1))
    done
    echo $port
}

# wait_for_line PID FILE: until the program has said that it listens.
wait_for_line() {
    tries=100
    until grep -qs 'listening on' "$2"; do
        tries=$((tries - 1))
        if [ $tries = 0 ] || ! kill -0 "$1" 2>/dev/null; then
            cat "$2" >&2
            die "a program did not start; what it said is above"
        fi
        sleep 0.1
    done
}

# stop PID NAME: asks it to end, and takes its exit status seriously.
stop() {
    kill -INT "$1"
    wait "$1" || die "$2 ended with status $?; its output is in $out"
}

install_packages
build

out=$root/build/quickstart-$(date -u +%Y%m%dT%H%M%SZ)-$$
trace=$out/quickstart.trc
mkdir "$out"

say "Starting a simulated engine: an 8-billion-parameter model that drafts 3 tokens a step, and fails now and then"
"$bin/simserve" --port 0 --load-ms 1500 --first-step-ms 400 --drafts 3 --accept 0.7 --request-metrics \
    --fault error=1% --fault cut=1% --fault stall:600=2% --truth "$out/truth.ndjson" >"$out/simserve.log" 2>&1 &
server_pid=$!
wait_for_line $server_pid "$out/simserve.log"
upstream=$(sed -n 's/^simserve: listening on //p' "$out/simserve.log")
cat "$out/simserve.log"

proxy=127.0.0.1:$(free_port)
say "tracerec --proxy $proxy --upstream $upstream -o $trace"
"$bin/tracerec" --proxy "$proxy" --upstream "$upstream" -o "$trace" >"$out/tracerec.log" 2>&1 &
recorder_pid=$!
wait_for_line $recorder_pid "$out/tracerec.log"
cat "$out/tracerec.log"

say "Sending $seconds s of mixed load"
"$bin/simload" --server "$proxy" --seconds "$seconds" --rate 9 --requests 100000 --log "$out/simload.ndjson" &
load_pid=$!
wait $load_pid || die "the load did not go through; see the files in $out"
load_pid=

stop $recorder_pid tracerec
recorder_pid=
stop $server_pid simserve
server_pid=

say "traceanalyze report $trace"
"$bin/traceanalyze" report "$trace"

say "The trace is $trace
   Beside it: truth.ndjson (when the engine sent which token) and simload.ndjson (what the client saw).
   Programs: $bin"
