#!/usr/bin/env bash
# Checks the formatting and, without --format-only, runs clang-tidy over every source file outside of tests/,
# and compiles each public header of training/ alone (the build does that for the other rooms).
# usage: tools/lint.sh [--format-only | --fix | FILE.cc...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-all}
files=("$@")
database=build/lint
torch_pch=$database/torch_api.pch

sources() { find pipeline decoders datasets training tools tests -name '*.h' -o -name '*.cc' -o -name '*.cu'; }

if [ "$mode" = --fix ]; then
  sources | xargs clang-format -i
  exit
fi
sources | xargs clang-format --dry-run -Werror
echo "format: clean"
[ "$mode" = --format-only ] && exit

cmake --preset lint >/dev/null
# The flags of files that see LibTorch, as the compilation database has them, without GCC's own.
torch_flags=$(.deps/venv/bin/python - $database/compile_commands.json <<'PYTHON'
import json, shlex, sys
command = next(e["command"] for e in json.load(open(sys.argv[1])) if e["file"].endswith("training/loop/scheduler.cc"))
words = iter(shlex.split(command)[1:])
kept = []
for word in words:
    if word in ("-o", "-c"):
        next(words)
    elif not word.startswith("-W"):
        kept.append(word)
print(shlex.join(kept))
PYTHON
)
# Reading LibTorch's headers takes 15 s a file; once is enough.
# shellcheck disable=SC2086
[ $torch_pch -nt training/device/torch_api.h ] ||
  clang++ $torch_flags -w -x c++-header training/device/torch_api.h -o $torch_pch

# A file that includes LibTorch's headers, itself or through ours, is given the precompiled ones.
tidy() {
  local arguments=()
  if grep -qE '"command": ".*libtorch' <<<"$(grep -F "$1\"" -B2 $database/compile_commands.json || true)"; then
    arguments=(--extra-arg=-include-pch "--extra-arg=$torch_pch")
  fi
  clang-tidy -p $database --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument \
    "${arguments[@]}" "$1" 2>/dev/null
}
stands_alone() { # shellcheck disable=SC2086
  clang++ $torch_flags -w -fsyntax-only -include-pch $torch_pch -x c++ "$1"
}
export -f tidy stands_alone
export database torch_pch torch_flags

if [[ $mode != *.cc ]]; then
  mapfile -t files < <(find pipeline decoders datasets training tools -name '*.cc' ! -name 'cuda_*' | sort)
  find training -name '*.h' | sort | xargs -P "$(nproc)" -I{} bash -c 'stands_alone {}'
  echo "headers of training/: each compiles alone"
fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'tidy {}'
echo "clang-tidy: clean, ${#files[@]} files"
