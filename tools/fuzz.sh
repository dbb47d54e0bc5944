#!/usr/bin/env bash
# Searches for inputs that crash a decoder: builds tests/fuzz with clang's libFuzzer, runs JOBS targets
# in parallel and prints a table of the results.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
usage: [JOBS=N] tools/fuzz.sh MINUTES [TARGET...]

Runs all targets of tests/fuzz, or the named ones (obj ply ...), for MINUTES in total, with JOBS
targets in parallel (default 2).
Inputs that crash are kept in build/fuzz/crashes/TARGET. After the decoder is fixed, copy the file to
tests/fuzz/regressions/TARGET, where every test run replays it. The corpus in build/fuzz/corpus grows
from run to run. The exit code is 1 if a target crashed.

  tools/fuzz.sh 30
  tools/fuzz.sh 5 gltf ply
TEXT
}

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  '' | *[!0-9]*) usage >&2; exit 2 ;;
esac
minutes=$1
jobs=${JOBS:-2}
shift

cd "$root"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzz_targets --parallel "$jobs" >build/fuzz/build.log 2>&1 \
  || { tail -n 20 build/fuzz/build.log >&2; echo "fuzz: the build failed" >&2; exit 1; }
python=$(sed -n 's/^MILLRACE_PYTHON:[A-Z]*=//p' build/fuzz/CMakeCache.txt)
"$python" tests/fuzz/make_seeds.py build/fuzz/seeds >/dev/null

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cc; do
    source=${source##*/fuzz_}
    targets+=("${source%.cc}")
  done
fi
seconds=$((minutes * 60 * jobs / ${#targets[@]}))
[ "$seconds" -gt 0 ] || seconds=1

run_target() {
  local target=$1 work=build/fuzz options=()
  mkdir -p "$work/corpus/$target" "$work/crashes/$target" "$work/seeds/$target" "$work/logs"
  [ -f "tests/fuzz/dictionaries/$target.dict" ] && options+=("-dict=tests/fuzz/dictionaries/$target.dict")
  [ -d "tests/fuzz/regressions/$target" ] && options+=("tests/fuzz/regressions/$target")
  # Slow inputs, inputs that need much memory and leaks count as crashes.
  nice -n 5 "$work/bin/fuzz_$target" "$work/corpus/$target" "$work/seeds/$target" "${options[@]}" \
    "-max_total_time=$2" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    "-artifact_prefix=$work/crashes/$target/" >"$work/logs/$target.log" 2>&1 || true
}
export -f run_target
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I '{}' bash -c 'run_target "$1" "$2"' _ '{}' "$seconds"

failed=0
printf '| target | executions | coverage | crashes |\n|---|---:|---:|---:|\n'
for target in "${targets[@]}"; do
  log=build/fuzz/logs/$target.log
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  coverage=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  crashes=$(find "build/fuzz/crashes/$target" -type f ! -name 'slow-unit-*' | wc -l)
  [ "$crashes" -eq 0 ] || failed=1
  # A target that failed to start has no statistics.
  [ -n "$executions" ] || { executions=none; failed=1; }
  printf '| %s | %s | %s | %s |\n' "$target" "$executions" "${coverage:-0}" "$crashes"
done
[ "$failed" -eq 0 ] || echo "fuzz: see build/fuzz/logs and build/fuzz/crashes" >&2
exit "$failed"
