"""train_nuwa on GIFs and texts of every kind: different lengths and sizes, a single frame, captions that are far too long,
empty or in another encoding, GIFs without a text and texts without a GIF. It trains, from GIFs and from their codes, and reports
which files it left out; a batch of one works, and fewer files than a batch are refused in one line. usage: train_odd_captions.py"""
import json
import math
import os
import pathlib
import subprocess
import sys

import numpy
from PIL import Image

from faults import ledger, must, preprocess, temporary

TRAIN, TRAIN_VAE = os.environ.get("TRAIN_NUWA", "train_nuwa"), os.environ.get("TRAIN_NUWA_VAE", "train_nuwa_vae")
GOOD = {  # name: width, height, frames, the text's bytes
    "single.gif": (20, 18, 1, "one frame".encode()),
    "wide.gif": (60, 9, 3, "\ufeffwith a mark in front\r\n".encode()),
    "tall.GIF": (9, 60, 12, "longer than asked for".encode()),
    "small.gif": (2, 2, 4, b""),
    "long_text.gif": (20, 20, 4, ("words without an end " * 400).encode()),
    "words.gif": (20, 20, 4, "ein Bär, 一只熊 🐻".encode()),
    "plain.gif": (20, 20, 4, b"plain"),
    "other.gif": (16, 16, 6, b"other\nlines"),
}
BAD = {
    "utf16.gif": (20, 18, 4, "a caption".encode("utf-16")),
    "latin.gif": (20, 18, 4, "ein Bär".encode("latin-1")),
}
MODEL = ["--dim", "12", "--max-video-frames", "4", "--text-max-seq-len", "16", "--text-enc-depth", "1", "--text-enc-heads", "2", "--text-enc-dim-head", "4",
         "--dec-depth", "1", "--dec-heads", "2", "--dec-dim-head", "4", "--threads", "1", "--workers", "2", "--max-error-share", "0.9"]


def make_folder(folder):
    folder.mkdir()
    chance = numpy.random.default_rng(1)
    for name, (width, height, count, text) in {**GOOD, **BAD}.items():
        frames = [Image.fromarray(chance.integers(0, 256, (height, width, 3), dtype=numpy.uint8)) for _ in range(count)]
        frames[0].save(folder / name, format="GIF", save_all=True, append_images=frames[1:], duration=40)
        (folder / name).with_suffix(".txt").write_bytes(text)
    (folder / "cut.gif").write_bytes((folder / "plain.gif").read_bytes()[:200])
    (folder / "cut.txt").write_text("cut off")
    (folder / "alone.gif").write_bytes((folder / "plain.gif").read_bytes())
    (folder / "lonely.txt").write_text("no clip")
    return folder


def train(place, data, results, *more):
    return subprocess.run([TRAIN, data, "--vae", place / "vae" / "checkpoint.2.pt", "--results-folder", place / results, *MODEL, *map(str, more)],
                          capture_output=True, text=True, timeout=200)


def check_losses(place, results, steps):
    lines = [json.loads(line) for line in (place / results / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    if len(losses) != steps or not all(map(math.isfinite, losses)):
        sys.exit(f"{results}: the losses are {losses}")


def check_left_out(told, what):
    """All that is bad, and nothing else."""
    bad = {*BAD, "cut.gif", "alone.gif", "lonely.txt"}
    seen = {name for name in [*bad, *GOOD] if name in told or (name not in ("alone.gif", "lonely.txt") and name[:-4] + ".txt" in told)}
    if seen != bad:
        sys.exit(f"{what} names {sorted(seen)}, not {sorted(bad)}: {told}")


def from_gifs(place, media):
    run = must(train(place, media, "gifs", "--num-train-steps", 6, "--batch-size", 3, "--grad-accum-every", 2, "--valid-frac", 0.2,
                     "--save-results-every", 3))
    check_losses(place, "gifs", 6)
    errors = place / "gifs" / "errors.jsonl"
    check_left_out(run.stderr + errors.read_text(), "train_nuwa")
    if "UTF-16" not in run.stderr + errors.read_text():
        sys.exit("nothing says that a text is UTF-16")
    with Image.open(place / "gifs" / "0.png") as strip:
        if strip.size != (8, 4 * 8):
            sys.exit(f"the strip is {strip.size}")
    # With --no-cut, texts that are too long are errors.
    refused = train(place, media, "whole", "--num-train-steps", 4, "--batch-size", 3, "--valid-frac", 0, "--no-cut", "true")
    if "long_text" not in must(refused).stderr + (place / "whole" / "errors.jsonl").read_text():
        sys.exit(f"the long text was taken: {refused.stderr}")


def from_codes(place, media):
    out = place / "codes.arrow"
    made = preprocess("tokens", media, "--model", place / "vae" / "checkpoint.2.pt", "--frames", 4, "--captions", "--out", out)
    told = made.stderr + "".join(json.dumps(line) for line in ledger(out))
    check_left_out(told, f"preprocess (code {made.returncode})")
    must(train(place, out, "codes", "--num-train-steps", 4, "--batch-size", 2, "--valid-frac", 0))
    check_losses(place, "codes", 4)


def small_batches(place, media):
    must(train(place, media, "one", "--num-train-steps", 3, "--batch-size", 1, "--grad-accum-every", 1, "--valid-frac", 0.1))
    check_losses(place, "one", 3)
    few = train(place, media, "few", "--num-train-steps", 3, "--batch-size", 40, "--valid-frac", 0)
    lines = must(few, 2).stderr.splitlines()
    if "too few for batches of 40" not in lines[-1]:
        sys.exit(f"expected one line that says so, got: {few.stderr}")
    if (place / "few" / "metrics.jsonl").exists():
        sys.exit("a refused run left results")


def main():
    with temporary() as place:
        place = pathlib.Path(place)
        media = make_folder(place / "media")
        must(subprocess.run([TRAIN_VAE, media, "--results-folder", place / "vae", "--num-train-steps", "2", "--batch-size", "1", "--image-size", "8",
                             "--channels", "1", "--dim", "4", "--resnet-groups", "2", "--num-layers", "1", "--use-attn", "false", "--vq-codebook-size", "16",
                             "--vq-codebook-dim", "8", "--use-vgg-and-gan", "false", "--valid-frac", "0.1", "--max-error-share", "0.9", "--threads", "1"],
                            capture_output=True, text=True, timeout=200))
        from_gifs(place, media)
        from_codes(place, media)
        small_batches(place, media)
        print(f"{len(GOOD)} odd GIFs with texts trained on, {len(BAD) + 3} left out")


if __name__ == "__main__":
    main()
