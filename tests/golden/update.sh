#!/usr/bin/env bash
# Makes the golden logits anew with mlx-lm 0.32.2, the reference. Review the result as a diff.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../.deps/golden-reference
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q mlx-lm==0.32.2 "mlx[cpu]==$(<"$here/../../mlx_version")" numpy
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$venv/bin/python" "$here/make_weights.py" --out "$out" --update
"$venv/bin/python" "$here/make_logits.py" --weights "$out" --out "$here/logits"
"$venv/bin/python" "$here/make_embeddings.py" --weights "$out" --out "$here/embeddings"
