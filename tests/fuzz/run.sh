#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each for SECONDS_EACH (default 60), JOBS at a time (default 2), with the samples as
# seeds. Exits 1 when one found something; the input is left in the build folder.
#   tests/fuzz/run.sh [SECONDS_EACH [JOBS [TARGET...]]]
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD_DIR:-$top/build-fuzz}
seconds=${1:-60}
jobs=${2:-2}
shift $(($# < 2 ? $# : 2))
cmake -S "$top" -B "$build" -DCMAKE_C_COMPILER=clang -DFUZZ=ON -DSAN=address,undefined >/dev/null
cmake --build "$build" -j"$(nproc)" >/dev/null
cd "$build"

mkdir -p seeds/fuzz_trr
for text in "$top"/tests/diff/*.trace.txt; do
    rm -f "$(basename "$text" .txt)"
    bin/mktrace "$(basename "$text" .txt)" <"$text"
done
"$top"/tests/fuzz/trace_seeds.py seeds/fuzz_trr "$top"/samples/real/sample.trc ./*.trace >/dev/null

[ $# -gt 0 ] || set -- $(cd bin && ls -d fuzz_*)

run() {
    mkdir -p "corpus/$1" "found/$1" "seeds/$1"
    [ "$1" = fuzz_trr ] || cp "$2"/tests/wire/* "seeds/$1/"
    bin/"$1" -max_total_time="$3" -artifact_prefix="found/$1/" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        "corpus/$1" "seeds/$1" >"$1.log" 2>&1 && verdict=clean || verdict=FOUND
    echo "$1: $verdict, $(grep -oE 'number_of_executed_units: [0-9]+' "$1.log" | grep -oE '[0-9]+') runs, $(grep -oE 'cov: [0-9]+' "$1.log" | tail -1)"
    [ "$verdict" = clean ]
}
export -f run
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c "run {} '$top' $seconds"
