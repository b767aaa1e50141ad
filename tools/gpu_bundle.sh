#!/usr/bin/env bash
# Packs what tools/gpu_check.sh needs on a machine with an NVIDIA GPU, and no network, compiler or checkout there: this
# build (build/release, made against the CPU wheel), its libraries, the golden answers, the default model and the
# mlx-cuda-13 wheel.
#   tools/gpu_bundle.sh OUT [MIB]     OUT/part-aa, OUT/part-ab, … of at most MIB MiB each (default: one part)
# There: cat part-* | tar x && ./gpu_check.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: tools/gpu_bundle.sh OUT [MIB]}
size=${2:-4096}
version=$(<"$root/mlx_version")
build=${TANDEM_BUILD:-$root/build/release}
cache=$root/.deps/mlx-cuda
stage=$out/stage
programs="tandem tandem-rank tensor_test runner_test golden_test default_model_test step_bench"

mkdir -p "$cache"
wheel=$cache/wheel-$version.tar.xz
if [[ ! -e $wheel ]]; then
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
    --platform manylinux_2_35_x86_64 -d "$work" "mlx-cuda-13==$version"
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  tar c -C "$work/wheel" mlx mlx_cuda_13.libs | xz -6 -T0 >"$wheel.new"
  mv "$wheel.new" "$wheel"
fi

# shellcheck disable=SC2086
ninja -C "$build" $programs >/dev/null
rm -rf "$stage" "$out"/part-*
mkdir -p "$stage/build/bin" "$stage/build/lib" "$stage/build/tests/golden" "$stage/models"
for program in $programs; do
  objcopy --strip-debug "$build/bin/$program" "$stage/build/bin/$program"
  ldd "$build/bin/$program" | awk '$3 ~ /lib(spdlog|fmt|ssl|crypto|xxhash|sqlite3)\.so/ {print $3}'
done | sort -u | xargs -I{} cp -L {} "$stage/build/lib/"
"$root/tests/golden/make.sh" "$stage/build/checkpoints" >/dev/null
cp -r "$root/tests/golden/logits" "$root/tests/golden/embeddings" "$root/tests/golden/default_model.json" "$stage/build/tests/golden/"
tar c -C "$stage" build | xz -3 -T0 >"$stage/build.tar.xz"
rm -rf "$stage/build"
cp "$root/tools/gpu_check.sh" "$root/tools/gpu_serve.py" "$stage/"
ln "$wheel" "$stage/wheel.tar.xz" 2>/dev/null || cp "$wheel" "$stage/wheel.tar.xz"
cp -L "$("$root/tools/fetch_default_model.sh")" "$stage/models/"
# What changes from build to build comes last.
tar c -C "$stage" models wheel.tar.xz gpu_check.sh gpu_serve.py build.tar.xz | split -b "${size}M" - "$out/part-"
rm -rf "$stage"
ls -l "$out"/part-*
