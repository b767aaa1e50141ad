#!/usr/bin/env bash
# no_libmlx.sh TANDEM RANK: passes when the libraries of both can be listed, one of RANK's is MLX's, and none of TANDEM's is.
set -euo pipefail
libraries() { if [[ $(uname) == Darwin ]]; then otool -L "$1"; else ldd "$1"; fi; }
of_tandem=$(libraries "${1:?the tandem program}")
of_rank=$(libraries "${2:?the tandem-rank program}")
grep -qi mlx <<<"$of_rank" || { echo "no_libmlx: expected MLX among the libraries of $2, got: $of_rank" && exit 1; }
! grep -i mlx <<<"$of_tandem" || { echo "no_libmlx: $1 must not load MLX" && exit 1; }
