#!/usr/bin/env bash
# From a fresh Debian 12 machine to a working Millrace: sets up, builds, and runs the main job on real
# media: folders in, caches out, a look at what is in them; then a small model trained on the pictures,
# and text to video on digits that are drawn here.
# Safe to run again. What it makes is in quickstart-out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/dev/phases.sh
out=quickstart-out
media=$out/media
bin=build/release/bin

look_at_the_media() {
  local kind
  for kind in pictures clips; do $bin/inspect --doctor $media/$kind; echo; done
}

make_caches() {
  $bin/preprocess images $media/pictures --out $out/pictures.npy --size 128 \
    --trace $out/trace.json --dump-graph $out/graph.dot
  echo
  $bin/preprocess videos $media/clips --out $out/clips.arrow --frames 17 --size 128 --fps 8
  echo
  $bin/preprocess gifs $media/gifs --out $out/gifs.arrow --frames 10 --size 64 --quiet
  $bin/preprocess audio $media/sounds --out $out/sounds.npy --rate 24000 --seconds 2 --mono --quiet
  $bin/preprocess meshes $media/meshes --out $out/meshes.arrow --face-edges --quiet
}

look_at_the_caches() {
  $bin/inspect $out/pictures.npy --verify --sheet $out/pictures.png
  echo
  $bin/inspect $out/clips.arrow --verify --row 0 --sheet $out/clips.png
  $bin/inspect $out/gifs.arrow --sheet $out/gifs.png >/dev/null
  $bin/inspect $out/sounds.npy --sheet $out/sounds.png >/dev/null
  $bin/inspect $out/meshes.arrow --sheet $out/meshes.png >/dev/null
}

open_them_elsewhere() {
  .deps/venv/bin/python - $out <<'PYTHON'
import sys
import numpy, pyarrow
out = sys.argv[1]
pictures = numpy.load(f"{out}/pictures.npy", mmap_mode="r")
print("numpy:  ", pictures.shape, pictures.dtype)
table = pyarrow.ipc.open_file(pyarrow.memory_map(f"{out}/clips.arrow")).read_all()
print("pyarrow:", table.num_rows, "rows of", ", ".join(table.schema.names))
PYTHON
}

# trained SECONDS PROGRAM...: a run that ends in order when its time is up.
trained() {
  local code=0
  timeout --signal=TERM "$1" "$bin/$2" "${@:3}" --clear || code=$?
  [ $code = 0 ] || [ $code = 124 ]
}

# A small autoencoder for two minutes at most; it ends in order when its time is up. So short a run
# learns most without a discriminator and with a codebook.
train_a_model() {
  trained 120 train_vqgan $media/pictures --results-folder $out/vqgan --image-size 64 --dim 32 --layers 2 \
    --codebook-size 1024 --lookup-free-quantization false --use-vgg-and-gan false --batch-size 8 --lr 1e-3 \
    --warmup-steps 20 --num-train-steps 400 --valid-frac 0.1 --save-results-every 50 --save-model-every 200 || return
  .deps/venv/bin/python - $out/vqgan <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(f"{sys.argv[1]}/metrics.jsonl")]
valid = [line["valid_ema_loss"] for line in lines if "valid_ema_loss" in line]
print(f"validation loss {valid[0]:.3f} -> {valid[-1]:.3f}: {valid[0] / valid[-1]:.1f} times less, in {lines[-1]['step'] + 1} steps")
PYTHON
}

# Two small models on one thread each, which is quicker for them than two: one learns to see digits, the other to write
# clips of texts.
text_to_video() {
  local digits=$out/digits ways=(right left down up) prompts=() i
  for i in 0 1 2 3 4 5 6 7 8 9; do prompts+=("the digit $i moves ${ways[i % 4]}"); done
  mkdir -p $digits
  $bin/sample_digits $digits/moving.npy --count 400 --size 24 --frames 5 --spread 0 || return
  trained 120 train_nuwa_vae $digits/moving.npy --results-folder $digits/vae --quiet --threads 1 --image-size 24 --channels 1 \
    --dim 32 --num-layers 2 --use-attn false --use-vgg-and-gan false --l2-recon-loss true --vq-codebook-size 256 \
    --vq-codebook-dim 64 --vq-threshold-ema-dead-code 0.5 --batch-size 4 --lr 3e-3 --warmup-steps 30 --schedule cosine \
    --use-ema false --num-train-steps 300 --save-results-every 300 --save-model-every 1000 || return
  trained 240 train_nuwa $digits/moving.npy --texts $digits/moving.txt --vae "$(ls -t $digits/vae/vae.*.pt | head -n 1)" \
    --results-folder $digits/nuwa --quiet --threads 1 --max-video-frames 5 --dim 96 --text-max-seq-len 32 --text-enc-depth 1 \
    --text-enc-heads 4 --text-enc-dim-head 24 --dec-depth 2 --dec-heads 4 --dec-dim-head 24 --batch-size 8 --grad-accum-every 1 \
    --lr 2e-3 --warmup-steps 30 --schedule cosine --num-train-steps 350 --save-results-every 350 --save-model-every 1000 \
    --filter-thres 0.98 --temperature 0.3 --prompts "${prompts[@]}"
}

tell() {
  cat <<TEXT
$out/media/              real photos, clips, GIFs with captions, sounds and meshes
$out/pictures.npy        opens with numpy.load(mmap_mode="r")
$out/clips.arrow         opens with pyarrow, HF datasets, polars, DuckDB
$out/*.errors.jsonl      what could not be read, once each ($(cat $out/*.errors.jsonl | wc -l) files)
$out/*.png               contact sheets: look at pictures.png, clips.png, meshes.png, sounds.png
$out/trace.json          what each thread did; open it in Perfetto
$out/graph.dot           the task graph of one batch
$out/vqgan/*.png         pictures beside what the model makes of them, every 50 steps; *.ema.png: its average
$out/vqgan/checkpoint.*  go on with: train_vqgan --config $out/vqgan/config.toml --resume --num-train-steps 5000
$out/vqgan/events.out.*  tensorboard --logdir $out/vqgan
$out/digits/nuwa/349.*   clips that NUWA made of ten texts, "the digit 0 moves right" to 9, side by side; .png: frames from top to bottom
TEXT
}

phase "set-up" tools/setup.sh
phase "release build of the programs below" build release --target preprocess inspect train_vqgan train_nuwa_vae train_nuwa sample_digits
phase "sample media" tools/samples/sample_media.sh $media
phase "what is in the folders" look_at_the_media
phase "folders to caches" make_caches
phase "what is in the caches" look_at_the_caches
phase "the same files in Python" open_them_elsewhere
phase "training a small VQGAN" train_a_model
phase "text to video: moving digits" text_to_video
phase "where everything is" tell
finish
