#!/usr/bin/env bash
# Checks the formatting and, without --format-only, runs clang-tidy over the torch-free half.
# usage: tools/lint.sh [--format-only | --fix | FILE.cc...]
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
# Some flags are GCC's alone.
[[ $mode == *.cc ]] || mapfile -t files < <(find pipeline decoders datasets tools -name '*.cc' ! -name 'train_*' ! -name tokenizers.cc ! -name model_weights.cc | sort)
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy -p $database --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
echo "clang-tidy: clean"
