#!/usr/bin/env bash
# Checks this build on an NVIDIA GPU, from the folder that a bundle of tools/gpu_bundle.sh was unpacked in. Needs
# CUDA 13 with cuDNN and NCCL, as the PyPI packages of PyTorch or of mlx-cuda-13 install them, and nvidia-cuda-crt.
#   ./gpu_check.sh [CHECK …]      all checks, or the named ones: pools runner ahead golden answer tokens serve step speed
# NVIDIA_LIBS names the folder that holds nvidia/cu13/lib; default: the site-packages of python3. Ends with 0 when
# every check passed. DEVICE=cpu MLX_LIB=DIR tries the script itself on a machine without a GPU.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")"
device=${DEVICE:-gpu}
[[ -d build ]] || tar xJf build.tar.xz
if [[ $device == gpu ]]; then
  if [[ ! -d wheel ]]; then
    mkdir wheel
    tar xJf wheel.tar.xz -C wheel
    # libmlx looks for CUDA's libraries beside itself.
    ln -s "${NVIDIA_LIBS:-$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')}/nvidia" wheel/nvidia
  fi
  MLX_LIB=$PWD/wheel/mlx/lib
  libraries=$(echo wheel/nvidia/*/lib | tr ' ' '\n' | sed "s|^|$PWD/|" | paste -sd:)
  [[ -n ${CUDA_HOME:-} || -d /usr/local/cuda ]] || export CUDA_HOME=$PWD/wheel/nvidia/cu13
fi
export LD_LIBRARY_PATH=$PWD/build/lib:${MLX_LIB:?}:${libraries:-}:${LD_LIBRARY_PATH:-}
export XDG_CACHE_HOME=$PWD/cache TANDEM_HOME=$PWD/build TANDEM_RANK=$PWD/build/bin/tandem-rank
export MLX_PTX_CACHE_DIR=$PWD/cache/kernels MLX_ENABLE_TF32=${MLX_ENABLE_TF32:-0}
mkdir -p cache/tandem
ln -sfn "$PWD/models" cache/tandem/models
model=$(echo models/*.gguf)
bin=build/bin

# Test cases by pattern. One that fits none is a failure: doctest alone would be content.
cases() { # SECONDS PROGRAM PATTERN…
  local limit=$1 program=$bin/$2 all
  shift 2
  for pattern in "$@"; do
    all=$("$program" -c -tc="$pattern" | sed -nE 's/.*filters: ([0-9]+).*/\1/p')
    [[ ${all:-0} -gt 0 ]] || { echo "no test case of $program is called $pattern" && return 1; }
  done
  timeout "$limit" "$program" -tc="$(IFS=, && echo "$*")"
}
check_pools() { cases 300 tensor_test 'host:*' '*pool*' '*many writes*' '*copied pages*'; }
check_runner() { cases 300 runner_test '*plain*' '*copied page*' '*warmed-up*'; }
# Draws on the device, steps issued ahead, and what rides on them.
check_ahead() { cases 300 runner_test 'device draw*' 'overlap*' 'index reuse*' 'embeddings*'; }
check_golden() {
  timeout 500 $bin/golden_test --checkpoints=build/checkpoints --logits=build/tests/golden/logits
}
check_answer() {
  rm -f rank.log
  timeout 300 $bin/tandem generate "$model" --device "$device" --path plain --rank-log rank.log \
    --prompt 'What is the capital of France?' --max-tokens 24 --temp 0 | tee answer.txt
  grep 'holds' rank.log
  grep -q "$device, plain path" rank.log && grep -q Paris answer.txt
}
check_tokens() { cases 500 default_model_test '*one rank answers*'; }
# Constrained and plain answers in one batch, and embeddings, over HTTP.
check_serve() { timeout 300 python3 gpu_serve.py $bin/tandem "$model" "$device"; }
check_step() { # with a step issued ahead, and without
  for path in plain plain-serial plain plain-serial; do
    timeout 200 $bin/step_bench "$model" 1 512 256 $path || return 1
  done
}
check_speed() {
  for batch in 1 4 8; do
    timeout 300 $bin/tandem bench "$model" --device "$device" --rank-log rank.log -p 512 -g 128 -b $batch || return 1
  done
}

[[ $device == gpu ]] && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
failed=()
for check in ${*:-pools runner ahead golden answer tokens serve step speed}; do
  echo "== $check"
  start=$(date +%s.%N)
  "check_$check" || failed+=("$check")
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "   %.1f s\n", b - a }'
done
if ((${#failed[@]})); then
  echo "FAILED: ${failed[*]}"
  tail -n 30 rank.log 2>/dev/null
  exit 1
fi
echo "all checks passed"
