#!/usr/bin/env bash
# Sets up, builds and runs all tests: the release build, then everything once more with the address and
# undefined-behaviour sanitizers, the torch-free half with the thread sanitizer, and clang-tidy. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/dev/phases.sh

phase "set-up" tools/setup.sh
phase "release build" build release
phase "public headers, each alone" build release --target all_verify_interface_header_sets
phase "release tests" ctest --preset release -j "$(nproc)"
phase "address and undefined-behaviour sanitizer build" build asan
phase "address and undefined-behaviour sanitizer tests" ctest --preset asan -j "$(nproc)"
phase "thread sanitizer build" build tsan
phase "thread sanitizer tests" ctest --preset tsan -j "$(nproc)"
phase "format and clang-tidy" tools/lint.sh
finish
