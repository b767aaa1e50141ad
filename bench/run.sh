#!/usr/bin/env bash
# Speed of this build beside mlx-lm on the same weights, in one run; arguments go to bench/run.py.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.deps/benchvenv
if [[ ! -x $venv/bin/python ]]; then
  echo "bench: installing mlx-lm into $venv" >&2
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import mlx_lm' 2>/dev/null ||
  "$venv/bin/pip" install -q --disable-pip-version-check "mlx[cpu]==$(<mlx_version)" "mlx-lm==0.32.2"
gguf=$(tools/fetch_default_model.sh)
checkpoint=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/bench/SmolLM2-135M-Instruct-mlx
[[ -e $checkpoint/tokenizer_config.json ]] || "$venv/bin/python" bench/peers/export_mlx.py "$gguf" "$checkpoint"
exec "$venv/bin/python" bench/run.py --gguf "$gguf" --mlx "$checkpoint" "$@"
