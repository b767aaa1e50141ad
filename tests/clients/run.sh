#!/usr/bin/env bash
# run.sh: installs the clients of versions.txt into .deps/clients, where they are not there yet, and runs the tests of this
# folder in a network namespace that has nothing but loopback. What does not install is skipped by the tests, with a reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit=600 # seconds for one client

install() { # FOLDER PACKAGE
  local folder=.deps/clients/$1
  [[ $(cat "$folder/.installed" 2>/dev/null) != "$2" ]] || return 0
  echo "installing $2"
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{"private": true}' >"$folder/package.json"
  if (cd "$folder" && timeout "$limit" npm install --no-audit --no-fund --loglevel=error "$2" >install.log 2>&1); then
    echo "$2" >"$folder/.installed"
  else
    echo "$2 does not install: $folder/install.log says why"
  fi
}

if command -v npm >/dev/null; then
  while read -r folder package; do
    [[ -z $folder || $folder == \#* ]] || install "$folder" "$package"
  done <tests/clients/versions.txt
else
  echo "there is no npm: all clients are skipped"
fi
alone=(unshare --net)
[[ $(id -u) == 0 ]] || alone=(unshare --map-root-user --net)
"${alone[@]}" true || { echo "no namespaces here: unshare failed" >&2 && exit 1; }
# shellcheck disable=SC2016
exec "${alone[@]}" sh -c 'ip link set lo up && exec "$@"' sh \
  .deps/venv/bin/python -m pytest -q -p no:cacheprovider "$@" tests/clients
