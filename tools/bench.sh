#!/usr/bin/env bash
# Benchmarks Millrace against its peers: builds the programs, installs the peers into virtual
# environments, downloads real media, runs all in interleaved rounds, and prints a table. Safe to run
# again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/dev/phases.sh
source tools/bench/versions.sh
work=${MILLRACE_BENCH:-${MILLRACE_DEPS:-.deps}/bench}
python=/usr/bin/python3
[ -x "$python" ] || python=python3

usage() {
  cat <<'TEXT'
usage: tools/bench.sh decode|tokens|preprocess [--rounds N] [--only WORKLOAD...] [--peers PEER...] [--out DIR]
       tools/bench.sh train [--rounds N] [--only MODEL...] [--pictures FOLDER] [--clips FOLDER] [--out DIR]

  decode      decoding files to batches: images, clips, gifs, audio, meshes
  tokens      random rows of a 1.6 GB token cache (.npy and Arrow) to batches
  preprocess  a folder of 500 JPEG files to one .npy file, timed as whole programs
  train       our trainers against the Python trainers, on the CPU; MODEL is one of tiny small (VQGAN) video mulan ...:
              see tools/bench/trainers/train.py

  --rounds N  number of interleaved rounds (default 3); the result is the median
  --only ...  run only these workloads, e.g. --only clips gifs
  --peers ... run only these peers, e.g. --peers torchvision spdl
  --pictures, --clips  folders of JPEG and mp4 files to train on, instead of the downloaded media
  --out DIR   folder for results.md, results.json, results.jsonl and results.png, or train.md (default build/bench-results)

The first run downloads about 0.7 GB of media and 5 GB of peers into .deps/bench (or $MILLRACE_BENCH).
Do not use the machine during the measurement. Every line shows the CPU use of other programs; a round
in which they used more than a fifth of a core is discarded if there is an undisturbed round.
TEXT
}

case ${1:-} in
  decode | tokens | preprocess | train) group=$1 && shift ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
esac

# environment NAME PACKAGES...: creates a virtual environment with exactly these pinned packages.
environment() {
  local target=$work/$1 wanted
  shift
  wanted="$*"
  [ "$(cat "$target/.installed" 2>/dev/null)" = "$wanted" ] && return
  echo "peers: installing $(basename "$target")"
  rm -rf "$target"
  "$python" -m venv "$target"
  "$target/bin/pip" install --quiet --disable-pip-version-check "$@"
  printf '%s' "$wanted" >"$target/.installed"
}

install_peers() {
  environment torch "${PEERS_TORCH[@]}"
  # torchaudio requires a torch version that is not released; it runs with this one.
  [ -d "$(echo "$work"/torch/lib/python3*/site-packages/torchaudio)" ] \
    || "$work/torch/bin/pip" install --quiet --disable-pip-version-check --no-deps "$PEER_TORCHAUDIO"
  environment dali "${PEERS_DALI[@]}"
  environment tensorflow "${PEERS_TENSORFLOW[@]}"
}

install_trainers() {
  environment trainers -r tests/parity/python/requirements.txt
  # One of musiclm-pytorch's requirements cannot be imported with this Python; nothing here needs it.
  [ -d "$(echo "$work"/trainers/lib/python3*/site-packages/musiclm_pytorch)" ] \
    || "$work/trainers/bin/pip" install --quiet --disable-pip-version-check --no-deps "$PEER_MUSICLM"
}

mkdir -p "$work"
phase "set-up" tools/setup.sh
if [ "$group" = train ]; then
  phase "release build" build release
  phase "trainers in Python" install_trainers
  phase "corpus" "$work/trainers/bin/python" tools/bench/peers/corpus.py "$work/corpus"
  phase "measurement" "$work/trainers/bin/python" tools/bench/trainers/train.py train --root . --work "$work" --out build/bench-results "$@"
  exit
fi
phase "bench build" build bench
phase "peers" install_peers
phase "corpus" "$work/torch/bin/python" tools/bench/peers/corpus.py "$work/corpus"
phase "measurement" "$work/torch/bin/python" tools/bench/run.py "$group" --root . --work "$work" --out build/bench-results "$@"
