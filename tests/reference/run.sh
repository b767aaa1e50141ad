#!/usr/bin/env bash
# run.sh: compares tandem's answers with those of mlx-lm's server (compare.py), which is installed into .deps/mlx-lm.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.deps/mlx-lm
wanted="mlx[cpu]==$(<mlx_version) mlx-lm==0.32.2"
if [[ $(cat "$venv/.installed" 2>/dev/null) != "$wanted" ]]; then
  echo "installing $wanted into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  # shellcheck disable=SC2086
  "$venv/bin/pip" install -q --disable-pip-version-check $wanted
  echo "$wanted" >"$venv/.installed"
fi
exec "$venv/bin/python" tests/reference/compare.py "$@"
