#!/usr/bin/env bash
# The one test command: installs what is missing, builds with warnings as errors under the address and undefined
# behaviour sanitizers, runs every test. A fresh Debian 12 machine is enough.
#   tests/run.sh [ctest arguments]     e.g. tests/run.sh -R trace
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD_DIR:-$top/build-test}

. "$top/samples/packages.sh"
install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"

cmake -S "$top" -B "$build" -DSAN="${SAN:-address,undefined}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j"$(nproc)"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
cd "$build"
ctest --output-on-failure --no-tests=error "$@"
