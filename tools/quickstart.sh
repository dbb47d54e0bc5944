#!/usr/bin/env bash
# From a fresh Debian 12 machine to a working Millrace: sets up, builds, and runs the main job on
# sample data. Safe to run again. What it makes is in quickstart-out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/phases.sh
out=quickstart-out
bin=build/release/bin

try_the_loader() {
  mkdir -p $out
  # A decoder that needs 300 us a picture, a few broken pictures, and a consumer that takes them as
  # fast as they come: the verdict should be "data-bound".
  $bin/bench_loader --samples 10000 --work-us 300 --to-float --bad-fraction 0.01 \
    --errors $out/errors.jsonl --trace $out/trace.json --dump-graph $out/graph.dot
  echo
  echo "$out/errors.jsonl  every bad sample, once ($(wc -l <$out/errors.jsonl) of them)"
  echo "$out/trace.json    what each worker did; open it in Perfetto"
  echo "$out/graph.dot     the task graph of one batch"
}

phase "set-up" tools/setup.sh
phase "release build" build release
phase "a loader over generated pictures" try_the_loader
finish
