#!/usr/bin/env bash
# Builds llama.cpp's server and benchmark, as the PyPI sdist of llama-cpp-python carries its sources, into the cache, and
# prints the folder of the binaries. BENCH_LLAMA_AMX=off leaves AMX out, for machines where it crashes.
set -euo pipefail
version=0.3.36
sum=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
amx=${BENCH_LLAMA_AMX:-on}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/bench
home=$cache/llama.cpp-$version
# The build is for this very processor: another one, or another choice, gets its own.
kind=$( (echo "$amx"; grep -m1 -E '^(flags|Features)' /proc/cpuinfo || sysctl -n machdep.cpu.brand_string) | cksum | cut -d' ' -f1)
build=$home/build-$kind
if [[ ! -x $build/bin/llama-server ]]; then
  mkdir -p "$home"
  if [[ ! -d $home/source ]]; then
    work=$(mktemp -d "$home/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "bench: fetching llama.cpp's sources (llama-cpp-python $version, 77 MB) from PyPI" >&2
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-python -d "$work" \
      "llama-cpp-python==$version" >&2
    got=$(python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' "$work"/*.tar.gz)
    [[ $got == "$sum" ]] || { echo "bench: the sources' SHA-256 is $got, expected $sum: not used" >&2; exit 1; }
    tar xzf "$work"/*.tar.gz -C "$work"
    mv "$work/llama_cpp_python-$version/vendor/llama.cpp" "$home/source"
  fi
  flags=()
  [[ $amx == on ]] || flags=("-DCMAKE_C_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" "-DCMAKE_CXX_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16")
  echo "bench: building llama.cpp in $build (some 10 minutes on two cores)" >&2
  {
    cmake -S "$home/source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
      -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
      -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF "${flags[@]}"
    nice -n 19 cmake --build "$build" --target llama-server llama-bench -j 2
  } >"$home/build.log" 2>&1 || { tail -20 "$home/build.log" >&2; exit 1; }
fi
echo "$build/bin"
