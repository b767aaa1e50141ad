#!/usr/bin/env bash
# sanitize.sh asan|tsan: builds and runs the unit tests under a sanitizer. tsan leaves out what links libmlx, which is not
# instrumented.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?asan or tsan}
cmake --preset "$preset" >/dev/null
# Tests of labels other than unit, and those of the checkout itself.
left_out='golden|default_model|layers|scripts|no_libmlx_in_tandem'
[[ $preset == asan ]] || left_out+='|tensor|kv|model|runner|rank'
targets=$(ninja -C "build/$preset" -t targets all | sed -nE '/^cmake_/d; s/^([a-z_]+_(test|fuzz)): phony$/\1/p' | sort -u |
  grep -vE "^($left_out)_test\$")
# shellcheck disable=SC2086
ninja -C "build/$preset" $targets
export ASAN_OPTIONS=detect_container_overflow=0 TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tools/tsan_suppressions.txt"
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j 2 -L unit -E "^($left_out)\$"
