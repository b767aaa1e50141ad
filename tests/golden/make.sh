#!/usr/bin/env bash
# Writes the tiny checkpoints for golden_test to $1. Uses the system's numpy, else one of its own in .deps.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=python3
if ! python3 -c 'import numpy' 2>/dev/null; then
  venv=$here/../../.deps/golden
  python=$venv/bin/python
  if ! "$python" -c 'import numpy' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check numpy
  fi
fi
exec "$python" "$here/make_weights.py" --out "$1"
