#!/usr/bin/env bash
# build.sh PRESET [TARGET…]: configures and builds one preset into build/PRESET.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?preset}
shift
start=$SECONDS
log=build/$preset/configure.log
mkdir -p "build/$preset"
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log"
  exit 1
fi
ninja -C "build/$preset" "$@"
echo "built $preset in $((SECONDS - start)) s"
