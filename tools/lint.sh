#!/usr/bin/env bash
# Checks the formatting and, without --format-only, runs clang-tidy over the torch-free half.
# usage: tools/lint.sh [--format-only | --fix]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-all}

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
find pipeline decoders datasets tools -name '*.cc' | sort |
  xargs -P "$(nproc)" -n 1 clang-tidy -p $database --quiet 2>/dev/null
echo "clang-tidy: clean"
