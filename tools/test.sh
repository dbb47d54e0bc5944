#!/usr/bin/env bash
# Sets up, builds and runs all tests: the release build, and the torch-free half, with the checkpoint reader,
# once more under the address, undefined-behaviour and thread sanitizers. Safe to run again.
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
finish
