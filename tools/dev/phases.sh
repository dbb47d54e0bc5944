# Sourced by quickstart.sh, test.sh and bench.sh: runs a phase and prints its name and duration.
# shellcheck shell=bash
phases_started=$SECONDS
phase_summary=()

phase() { # phase "what it does" command...
  local what=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  if ! "$@"; then
    printf '== %s: FAILED after %d s\n' "$what" $((SECONDS - started)) >&2
    exit 1
  fi
  phase_summary+=("$(printf '%5d s  %s' $((SECONDS - started)) "$what")")
}

# Prints a short summary if the build succeeds, and the whole log if it fails.
build() { # build PRESET [ARGUMENT OF CMAKE...]
  local log
  log=$(mktemp)
  if cmake --preset "$1" >"$log" 2>&1 && cmake --build --preset "$1" -j "$(nproc)" "${@:2}" >>"$log" 2>&1; then
    grep -E '^-- Millrace:' "$log" || true
    tail -n 1 "$log"
    rm -f "$log"
  else
    cat "$log"
    rm -f "$log"
    return 1
  fi
}

finish() {
  printf '\n== all phases, %d s in total\n' $((SECONDS - phases_started))
  printf '%s\n' "${phase_summary[@]}"
}
