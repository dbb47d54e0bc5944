#!/usr/bin/env bash
# Checks the formatting with clang-format, then runs clang-tidy over the torch-free half.
# usage: tools/lint.sh [--format-only | --fix | FILE.cc...]
#   --format-only  check only the formatting
#   --fix          format all files in place, check nothing
#   FILE.cc...     run clang-tidy only over these files
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-all}
files=("$@")

sources() { find pipeline decoders datasets training tools tests -name '*.h' -o -name '*.cc' -o -name '*.cu'; }

if [ "$mode" = --fix ]; then
  sources | xargs clang-format -i
  exit
fi
sources | xargs clang-format --dry-run -Werror
echo "format: clean"
[ "$mode" = --format-only ] && exit

database=build/dev
[ -f $database/compile_commands.json ] || cmake --preset dev >/dev/null
# clang-tidy does not know some of GCC's warning flags, hence -Wno-unknown-warning-option below.
[[ $mode == *.cc ]] || mapfile -t files < <(find pipeline decoders datasets tools -name '*.cc' ! -name 'train_*' ! -name tokenizers.cc ! -name model_weights.cc | sort)
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy -p $database --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
echo "clang-tidy: clean"
