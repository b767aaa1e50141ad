#!/usr/bin/env bash
# Makes the golden logits anew with mlx-lm 0.32.2, the reference. Review the result as a diff.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../.deps/golden-reference
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q mlx-lm==0.32.2 'mlx[cpu]==0.32.4' numpy
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
archs=llama,llama_tied_bias,llama_swa,mistral,qwen2,qwen3,qwen3_untied
"$venv/bin/python" "$here/make_tiny.py" --arch $archs --seed 1 --out "$out/f32"
"$venv/bin/python" "$here/make_tiny.py" --arch $archs --seed 1 --out "$out/g64" --bits 4 --group-size 64
"$venv/bin/python" "$here/make_tiny.py" --arch $archs --seed 1 --out "$out/g32" --bits 4 --group-size 32
mkdir -p "$here/logits"
for variant in f32 g64 g32; do
  for arch in ${archs//,/ }; do
    python3 "$here/trim.py" "$out/$variant/$arch/golden.safetensors" "$here/logits/$arch-$variant.safetensors"
  done
done
"$venv/bin/python" "$here/make_weights.py" --out "$out/weights" --update
