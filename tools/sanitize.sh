#!/usr/bin/env bash
# sanitize.sh asan|tsan: builds and runs the unit tests under a sanitizer. tsan covers the folders without MLX, since the
# prebuilt libmlx is not instrumented.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?asan or tsan}
cmake --preset "$preset" >/dev/null
targets() { ninja -C "build/$preset" -t targets all | sed -nE 's/^([a-z_]+_(test|fuzz)): phony$/\1/p' | sort -u; }
if [[ $preset == tsan ]]; then
  wanted=$(targets | grep -vE '^(tensor|kv|model|runner|probes|golden)_')
else
  wanted=$(targets)
fi
# shellcheck disable=SC2086
ninja -C "build/$preset" $wanted
export ASAN_OPTIONS=detect_container_overflow=0 TSAN_OPTIONS=halt_on_error=1
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j 2 -L unit -LE slow \
  -R "^($(echo "$wanted" | sed -E 's/_test$//' | paste -sd'|'))\$"
