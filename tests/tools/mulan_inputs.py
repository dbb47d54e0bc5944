"""train_mulan with its other inputs, end to end: spectrograms in an Arrow file, in both axis orders, and texts tokenized by a BPE
merges file, which `preprocess tokens` and `search` then use too. usage: mulan_inputs.py"""
import gzip
import json
import math
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import numpy
import pyarrow

from faults import make_sounds, must, preprocess, temporary

SEARCH = pathlib.Path(os.environ.get("SEARCH", "search"))
TRAIN = SEARCH.parent / "train_mulan"
MODEL = ["--batch-size", 4, "--num-train-steps", 6, "--threads", 1, "--workers", 1, "--audio-dim", 8, "--audio-depth", 1, "--audio-heads", 2, "--audio-dim-head", 4,
         "--patch-size", 8, "--text-dim", 8, "--text-depth", 1, "--text-heads", 2, "--text-dim-head", 4, "--text-max-seq-len", 16, "--dim-latent", 6,
         "--valid-frac", 0.2, "--max-error-share", 0.5, "--spec-aug-freq-mask", 4, "--spec-aug-time-mask", 4]
FREQUENCIES = 20


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def train(data, results, *more):
    run = subprocess.run([str(part) for part in (TRAIN, data, "--results-folder", results, *MODEL, *more)], capture_output=True, text=True, timeout=200)
    if run.returncode == 0:
        losses = [json.loads(line).get("loss") for line in (results / "metrics.jsonl").read_text().splitlines()]
        losses = [loss for loss in losses if loss is not None]
        check(len(losses) == 6 and all(map(math.isfinite, losses)), f"the losses are {losses}")
    return run


def write_spectrograms(path, time_first):
    """Times first: 16 of 9 to 20 times, and one that is too short for a patch. Frequencies first: all of 14 times."""
    chance = numpy.random.default_rng(1)
    if time_first:
        kind = pyarrow.list_(pyarrow.list_(pyarrow.float32(), FREQUENCIES))
        rows = [chance.random((5 if i == 3 else 9 + i % 12, FREQUENCIES), dtype="f4").tolist() for i in range(17)]
    else:
        kind = pyarrow.list_(pyarrow.list_(pyarrow.float32(), 14), FREQUENCIES)
        rows = [chance.random((FREQUENCIES, 14), dtype="f4").tolist() for _ in range(17)]
    schema = pyarrow.schema([("audio", kind), ("caption", pyarrow.string())])
    table = pyarrow.table([pyarrow.array(rows, kind), [f"noise {i}" for i in range(17)]], schema=schema)
    with pyarrow.ipc.new_file(str(path), schema) as file:
        file.write_table(table)
    return path


def spectrograms(folder):
    for time_first in (False, True):
        data = write_spectrograms(folder / f"spectrograms.{time_first}.arrow", time_first)
        flags = ["--accept-spec", "true", "--accept-spec-time-first", str(time_first).lower()]
        results = folder / f"results.{time_first}"
        run = must(train(data, results, *flags))
        told = run.stderr + ((results / "errors.jsonl").read_text() if (results / "errors.jsonl").exists() else "")
        check(("the spectrogram has 5 times, fewer than 8" in told) == time_first and told.count("fewer than") <= 2, told)
        wrong = must(train(data, folder / "wrong", "--accept-spec", "false"), 2)
        check("float32 with 1 axes" in wrong.stderr, wrong.stderr)


def words(folder):
    merges = folder / "merges.txt.gz"
    with gzip.open(merges, "wt") as file:
        file.write("#version: 0.2\nn o\nno i\ns e</w>\nnoi se</w>\nn u\n")
    sounds = make_sounds(folder / "sounds", 12)
    results, out = folder / "words", folder / "sounds.arrow"
    must(train(sounds, results, "--bpe", merges, "--data-max-length", 1200, "--sample-rate", 16000, "--spec-n-fft", 32))
    model = results / "mulan.5.pt"
    must(preprocess("tokens", sounds, "--model", model, "--out", out))
    found = subprocess.run([SEARCH, out, "--model", model, "--text", "noise number 3", "--bpe", merges], capture_output=True, text=True, timeout=60)
    check("noise number" in must(found).stdout, found.stdout)
    # Bytes are other tokens, so the place is another; a vocabulary that is larger is none of this model.
    scores = lambda run: [line.split()[0] for line in must(run).stdout.splitlines()]
    plain = subprocess.run([SEARCH, out, "--model", model, "--text", "noise number 3"], capture_output=True, text=True, timeout=60)
    check(scores(plain) != scores(found), "--bpe changes nothing")
    with gzip.open(merges, "at") as file:
        file.write("nu m\nnum b\n")
    larger = subprocess.run([SEARCH, out, "--model", model, "--text", "noise", "--bpe", merges], capture_output=True, text=True, timeout=60)
    check("but the model was trained with" in must(larger, 2).stderr, larger.stderr)


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        spectrograms(folder)
        words(folder)
        print("spectrograms either way round, and texts by merges")


if __name__ == "__main__":
    main()
