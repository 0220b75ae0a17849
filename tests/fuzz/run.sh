#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each for SECONDS_EACH (default 60), JOBS at a time (default 2), from the seeds of
# seeds.py on. Exits 1 when one found something; the input is left in the build folder.
#   tests/fuzz/run.sh [SECONDS_EACH [JOBS [TARGET...]]]
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD_DIR:-$top/build-fuzz}
seconds=${1:-60}
jobs=${2:-2}
shift $(($# < 2 ? $# : 2))
cmake -S "$top" -B "$build" -DCMAKE_C_COMPILER=clang -DFUZZ=ON -DSAN=address,undefined >/dev/null
cd "$build"
targets=$(make help | grep -oE 'fuzz_[a-z0-9_]+' | sort -u)
make -j"$(nproc)" mktrace $targets >/dev/null

mkdir -p traces
for text in "$top"/tests/diff/*.trace.txt; do
    trace=traces/$(basename "$text" .txt)
    rm -f "$trace"
    bin/mktrace "$trace" <"$text"
done
"$top"/tests/fuzz/seeds.py seeds "$top"/samples/real/sample.trc traces/*

run() {
    local target=$1 seeds=seeds/$1
    [[ $target == fuzz_dialect_* ]] && seeds=seeds/fuzz_dialect
    [ -d "$seeds" ] || seeds=seeds/others
    mkdir -p "corpus/$target" "found/$target"
    nice -n 15 "bin/$target" -max_total_time="$2" -artifact_prefix="found/$target/" -timeout=60 -rss_limit_mb=2048 \
        -print_final_stats=1 "corpus/$target" "$seeds" >"$target.log" 2>&1 && verdict=clean || verdict=FOUND
    echo "$target: $verdict, $(grep -oE 'number_of_executed_units: [0-9]+' "$target.log" | grep -oE '[0-9]+') runs, $(grep -oE 'cov: [0-9]+' "$target.log" | tail -1)"
    [ "$verdict" = clean ]
}
export -f run
[ $# -gt 0 ] || set -- $targets
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c "run {} $seconds"
