#!/usr/bin/env bash
# llama_cpp.sh MODEL: builds llama.cpp's server and benchmark, of the sources in the PyPI sdist of llama-cpp-python, into
# the cache, and prints the folder of the binaries. Where it crashes on MODEL with AMX, it is built without; so it is at
# once with BENCH_LLAMA_AMX=off.
set -euo pipefail
version=0.3.36
sum=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
model=$1
amx=${BENCH_LLAMA_AMX:-on}
home=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/bench/llama.cpp-$version
# The build is for this very processor: another one, or another choice, gets its own.
flags_of_cpu() { grep -m1 -E '^(flags|Features)' /proc/cpuinfo || sysctl -n machdep.cpu.brand_string; }
build=$home/build-$( (echo "$amx" && flags_of_cpu) | cksum | cut -d' ' -f1)

fetch() {
  local work got
  work=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$work"' RETURN
  echo "bench: fetching llama.cpp's sources (llama-cpp-python $version, 77 MB) from PyPI" >&2
  python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-python -d "$work" \
    "llama-cpp-python==$version" >&2
  got=$(python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' "$work"/*.tar.gz)
  [[ $got == "$sum" ]] || { echo "bench: the sources' SHA-256 is $got, expected $sum: not used" >&2 && return 1; }
  tar xzf "$work"/*.tar.gz -C "$work"
  mv "$work/llama_cpp_python-$version/vendor/llama.cpp" "$home/source"
}

compile() {
  local less=()
  local without="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
  [[ $amx == on ]] || less=("-DCMAKE_C_FLAGS=$without" "-DCMAKE_CXX_FLAGS=$without")
  cmake -S "$home/source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF "${less[@]}" &&
    nice -n 19 cmake --build "$build" --target llama-server llama-bench -j "$(nproc 2>/dev/null || echo 2)"
}

if [[ -e $build/.fails ]]; then
  BENCH_LLAMA_AMX=off exec "$0" "$model"
fi
if [[ ! -e $build/.works ]]; then
  mkdir -p "$home"
  [[ -d $home/source ]] || fetch
  echo "bench: building llama.cpp in $build (some 20 minutes of one core)" >&2
  compile >"$home/build.log" 2>&1 || { tail -20 "$home/build.log" >&2 && exit 1; }
  if ! "$build/bin/llama-bench" -m "$model" -p 64 -n 4 -r 1 >"$home/try.log" 2>&1; then
    [[ $amx == on ]] || { tail -20 "$home/try.log" >&2 && exit 1; }
    echo "bench: llama.cpp fails on this machine ($home/try.log): once more without AMX" >&2
    touch "$build/.fails"
    BENCH_LLAMA_AMX=off exec "$0" "$model"
  fi
  touch "$build/.works"
fi
echo "$build/bin"
