#!/usr/bin/env bash
# Speed of this build: beside its peers on the same weights (bench/peers/run.py), of two builds (ab), as counts of
# instructions (counts), of the wires without a model (wires), or of a penalty on hesitation at any server (hesitation).
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  ab) shift && exec python3 bench/ab.py "$@" ;;
  counts) shift && exec python3 bench/counts.py "$@" ;;
  hesitation) shift && exec python3 bench/hesitation/run.py "$@" ;;
  wires) shift && exec build/release/bin/bench_wires "$(tools/fetch_default_model.sh)" "$@" ;;
  --list | --help | -h) exec python3 bench/peers/run.py "$@" ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/bench
venv=.deps/benchvenv
if [[ ! -x $venv/bin/python ]]; then
  echo "bench: installing mlx-lm into $venv" >&2
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import mlx_lm' 2>/dev/null ||
  "$venv/bin/pip" install -q --disable-pip-version-check "mlx[cpu]==$(<mlx_version)" "mlx-lm==0.32.2"
gguf=$(tools/fetch_default_model.sh)
checkpoint=$cache/SmolLM2-135M-Instruct-mlx
[[ -e $checkpoint/tokenizer_config.json ]] || "$venv/bin/python" bench/peers/export_mlx.py "$gguf" "$checkpoint"
exec "$venv/bin/python" bench/peers/run.py --gguf "$gguf" --mlx "$checkpoint" --cache "$cache" "$@"
