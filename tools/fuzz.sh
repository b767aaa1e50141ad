#!/usr/bin/env bash
# fuzz.sh SECONDS: every fuzz target under libFuzzer for SECONDS, from its corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds}
if ! command -v clang++-19 >/dev/null; then
  echo "fuzz: installing clang-19" >&2
  sudo=$([[ $(id -u) == 0 ]] || echo sudo)
  $sudo apt-get update -qq
  $sudo apt-get install -y -qq --no-install-recommends clang-19 libclang-rt-19-dev >/dev/null
fi
cmake --preset fuzz >/dev/null
targets=$(ninja -C build/fuzz -t targets all | sed -nE '/^cmake_/d; s/^([a-z_]+_fuzz): phony$/\1/p' | sort -u)
[[ -n $targets ]] || { echo "fuzz: no fuzz target in build/fuzz" >&2 && exit 1; }
# shellcheck disable=SC2086
ninja -C build/fuzz $targets
for target in $targets; do
  corpus=$(find src -type d -path "*/testdata/$target" | head -1)
  scratch=build/fuzz/corpus/$target
  mkdir -p "$scratch"
  echo "fuzz: $target for $seconds s"
  "build/fuzz/bin/$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 "$scratch" ${corpus:+"$corpus"}
done
