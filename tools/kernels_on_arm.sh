#!/usr/bin/env bash
# kernels_on_arm.sh: cross-builds src/base and src/kernels for AArch64 into build/arm and runs the kernels' tests under
# qemu-user: all of them as a core with NEON alone, and products, which alone differ, as one with every extension that qemu
# knows.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $(uname -m) == aarch64 || $(uname -m) == arm64 ]]; then
  echo "kernels_on_arm: this machine is Arm itself; its fast tests run these kernels"
  exit 0
fi
tools/build.sh arm kernels_test

run_as() { # CPU ARGS…
  local start=$SECONDS
  qemu-aarch64 -cpu "$1" -L /usr/aarch64-linux-gnu build/arm/bin/kernels_test --no-intro "${@:2}"
  echo "kernels as $1: $((SECONDS - start)) s"
}
run_as max --test-case='matmul:*,experts:*,levels:*'
run_as cortex-a57
