#!/usr/bin/env bash
# Installs the torch-free half into an empty prefix, builds tests/embed against it, runs it, and
# checks which libraries it links. Usage: run.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source_dir=$1 build_dir=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build_dir" --prefix "$work/prefix" >"$work/install.log"
cmake -S "$source_dir/tests/embed" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/build/embed"
ldd "$work/build/embed" | tee "$work/ldd.txt"
if grep -iE 'torch|c10|python' "$work/ldd.txt"; then
  echo "the embedding program links LibTorch or Python"
  exit 1
fi
if grep -rn "$source_dir/pipeline" "$work/prefix/lib/cmake" 2>/dev/null; then
  echo "the installed package refers to the source tree"
  exit 1
fi
echo "1 passed, 0 failed"
