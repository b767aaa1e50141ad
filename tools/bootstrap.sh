#!/usr/bin/env bash
# bootstrap.sh [run|dev|arm]: installs what tandem needs to build ("run"), to be tested and formatted as well ("dev"), and
# to have its kernels tested for Arm on another machine ("arm").
# Debian and Ubuntu: through apt, as root or with sudo. macOS: names the brew packages. libmlx comes from a PyPI
# wheel into .deps/mlx; TANDEM_MLX=cpu|cuda-12|cuda-13|metal overrides the choice.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-run}

mlx_version=$(<mlx_version)
apt_run=(cmake ninja-build g++ pkg-config ccache git python3 python3-pip python3-venv
  libboost1.81-dev libssl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libxxhash-dev libsqlite3-dev libdnnl-dev doctest-dev)
apt_dev=(procps iproute2)
apt_arm=(g++-aarch64-linux-gnu qemu-user)
brew_run=(cmake ninja ccache boost openssl@3 fmt spdlog nlohmann-json cli11 xxhash sqlite onednn doctest rust)

say() { echo "bootstrap: $*"; }
fail() {
  echo "bootstrap: $*" >&2
  exit 1
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "needs root for: $* (run it yourself, then try again)"
  fi
}

apt_install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [[ ${#missing[@]} == 0 ]] && return
  say "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

system_packages() {
  if command -v apt-get >/dev/null; then
    local wanted=("${apt_run[@]}")
    [[ $kind == run ]] || wanted+=("${apt_dev[@]}")
    [[ $kind == arm && $(uname -m) != aarch64 ]] && wanted+=("${apt_arm[@]}")
    # Newer releases have dropped libboost1.81-dev; their default Boost is recent enough.
    apt-cache show libboost1.81-dev >/dev/null 2>&1 || as_root apt-get update -qq
    apt-cache show libboost1.81-dev >/dev/null 2>&1 || wanted=("${wanted[@]/libboost1.81-dev/libboost-dev}")
    apt_install "${wanted[@]}"
  elif [[ $(uname) == Darwin ]]; then
    command -v brew >/dev/null || fail "needs Homebrew (https://brew.sh), then: brew install ${brew_run[*]}"
    local missing=()
    for package in "${brew_run[@]}"; do
      brew list --versions "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [[ ${#missing[@]} == 0 ]] || fail "please run: brew install ${missing[*]}"
  else
    fail "this system has neither apt nor brew; please install: ${apt_run[*]}"
  fi
}

# A cargo of at least 1.87: the user's, else Debian's cargo-web.
rust() {
  local version
  version=$(cargo --version 2>/dev/null | sed -E 's/cargo 1\.([0-9]+).*/\1/' || true)
  [[ $version =~ ^[0-9]+$ && $version -ge 87 ]] && return
  if command -v apt-get >/dev/null && apt-cache show cargo-web >/dev/null 2>&1; then
    apt_install cargo-web rustc-web
  else
    fail "needs cargo 1.87 or newer; install it from https://rustup.rs, then try again"
  fi
}

mlx_flavour() {
  if [[ -n ${TANDEM_MLX:-} ]]; then
    echo "$TANDEM_MLX"
  elif [[ $(uname) == Darwin ]]; then
    echo metal
  elif command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
    echo cuda-13
  else
    echo cpu
  fi
}

# Adds the wheel of crt/*.h, which MLX compiles kernels of quantized products with and no wheel of CUDA 13 depends on,
# to the folder $1, in the version of the headers there.
cuda_headers() {
  local runtime version
  runtime=$(basename "$1"/nvidia_cuda_runtime-13.*.whl)
  version=$(cut -d- -f2 <<<"$runtime" | cut -d. -f1,2)
  python3 -m pip download -q --disable-pip-version-check --no-deps -d "$1" "nvidia-cuda-crt==$version.*" ||
    fail "pip could not download nvidia-cuda-crt $version, the headers that belong to $runtime: is PyPI reachable?"
}

mlx() {
  local flavour
  flavour=$(mlx_flavour)
  local stamp=".deps/mlx/$flavour-$mlx_version"
  [[ -e $stamp ]] && return
  say "fetching mlx-$flavour $mlx_version"
  local wheels options=(--no-deps)
  # NVIDIA's libraries are wheels of their own, which libmlx looks for beside itself.
  [[ $flavour == cuda-* ]] && options=()
  wheels=$(mktemp -d)
  python3 -m pip download -q --disable-pip-version-check "${options[@]}" -d "$wheels" "mlx-$flavour==$mlx_version" ||
    fail "pip could not download mlx-$flavour $mlx_version: is PyPI reachable, and is there a wheel for this platform?"
  [[ $flavour == cuda-13 ]] && cuda_headers "$wheels"
  rm -rf .deps/mlx
  mkdir -p .deps/mlx
  for wheel in "$wheels"/*.whl; do python3 -m zipfile -e "$wheel" .deps/mlx; done
  rm -rf "$wheels"
  touch "$stamp"
}

python_tools() {
  [[ $kind != run ]] || return 0
  cmp -s tests/requirements.txt .deps/venv/requirements.txt && return
  say "installing the test tools into .deps/venv"
  python3 -m venv .deps/venv
  .deps/venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt
  cp tests/requirements.txt .deps/venv/requirements.txt
}

# The official SDKs in Node: tests of them are skipped where there is no npm, or nothing to install from.
node_tools() {
  [[ $kind != run ]] || return 0
  command -v npm >/dev/null || return 0
  cmp -s tests/conformance/node/package.json .deps/node/package.json && return
  say "installing the SDKs for Node into .deps/node"
  rm -rf .deps/node
  mkdir -p .deps/node
  cp tests/conformance/node/package.json .deps/node/
  (cd .deps/node && timeout 300 npm install --no-audit --no-fund --no-package-lock --loglevel=error) ||
    { say "npm could not install them: their tests will be skipped" && rm -rf .deps/node; }
}

system_packages
rust
mlx
python_tools
node_tools
