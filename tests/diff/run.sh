#!/bin/sh
# run.sh MKTRACE TRACEANALYZE TEST: makes TEST.trace.txt a trace, asks TEST.sql of it and of a database loaded from it, and holds
# both answers against TEST.out.
set -eu
mktrace=$1 traceanalyze=$2 test=$3
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$mktrace" "$folder/t.trc" <"$test.trace.txt"
"$traceanalyze" load "$folder/t.trc" -o "$folder/t.sqlite"
for input in t.trc t.sqlite; do
    "$traceanalyze" sql "$folder/$input" "$(cat "$test.sql")" --format csv >"$folder/out"
    diff -u "$test.out" "$folder/out"
done
echo "1 passed, 0 failed"
