#!/usr/bin/env bash
# deep.sh [FAMILY [FOLDER]]: every tiny checkpoint, or those whose names begin so, over any ranks, in any steps, on both
# paths. FOLDER holds the checkpoints already; else they are written.
set -euo pipefail
cd "$(dirname "$0")/.."
family=${1:-}
checkpoints=${2:-build/release/golden}
[[ $# -eq 2 ]] || tests/golden/make.sh "$checkpoints"
shopt -s nullglob
folders=("$checkpoints/$family"*/)
[[ ${#folders[@]} -gt 0 ]] || { echo "deep: no checkpoint's name begins with $family" >&2; exit 2; }
number=0
failed=()
for folder in "${folders[@]}"; do
  name=$(basename "$folder")
  number=$((number + 1))
  echo "deep: $number of ${#folders[@]}: $name"
  build/release/bin/golden_test --no-skip --test-case='deep: *' --only="$name" \
    --checkpoints="$checkpoints" --logits=tests/golden/logits --minimal=1 || failed+=("$name")
done
[[ ${#failed[@]} -eq 0 ]] || { echo "deep: failed: ${failed[*]}" >&2; exit 1; }
echo "deep: all ${#folders[@]} passed"
