"""train_mesh_autoencoder, `preprocess tokens` and train_mesh_transformer on meshes of every kind: non-manifold, a polygon
soup, a single face, n-gons, and invalid files: empty, without faces, with NaN, with vertices that do not exist, truncated, and one
of a million faces. They work, with little memory, and the ledgers say what was left out and why. usage: train_odd_meshes.py"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from faults import ledger, make_meshes, preprocess, temporary

AUTOENCODER = os.environ.get("TRAIN_MESH_AUTOENCODER", "train_mesh_autoencoder")
TRANSFORMER = os.environ.get("TRAIN_MESH_TRANSFORMER", "train_mesh_transformer")
MOST_MB = 1500  # a million faces in the model would take tens of GB
SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
GOOD = {
    "single_face.obj": SQUARE + "f 1 2 3\n",
    "non_manifold.obj": SQUARE + "v 0 0 1\nv 0 0 -1\nf 1 2 3\nf 1 2 4\nf 1 2 5\nf 1 2 6\n",  # four faces on one edge
    "polygons.obj": SQUARE + "v 0.5 0.5 1\nf 1 2 3 4\nf 1 2 5\nf 3 4 5\n",
    "soup.obj": "".join(f"v {i % 3} {i % 5} {i % 7}\n" for i in range(30)) + "".join(f"f {3 * i + 1} {3 * i + 2} {3 * i + 3}\n" for i in range(10)),
    "twice.obj": SQUARE + "f 1 2 3\nf 3 1 2\nf 1 1 2\n",  # a face twice, and one without an area
}
BAD = {
    "empty.obj": "",
    "no_faces.obj": SQUARE,
    "not_a_number.obj": "v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "no_such_corner.obj": SQUARE + "f 1 2 9\n",
    "cut.ply": "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n",
}
MODEL = ["--num-discrete-coors", "16", "--dim-coor-embed", "4", "--encoder-dims-through-depth", "8", "--decoder-dims-through-depth", "8,6",
         "--dim-codebook", "8", "--codebook-size", "16"]


def make_folder(folder):
    make_meshes(folder, 8)
    for name, text in {**GOOD, **BAD}.items():
        (folder / name).write_text(text)
    side = 708  # a grid of a million faces
    corners = "".join(f"v {i} {k} 0\n" for i in range(side) for k in range(side))
    at = lambda i, k: i * side + k + 1
    faces = "".join(f"f {at(i, k)} {at(i + 1, k)} {at(i, k + 1)}\nf {at(i + 1, k)} {at(i + 1, k + 1)} {at(i, k + 1)}\n"
                    for i in range(side - 1) for k in range(side - 1))
    (folder / "million.obj").write_text(corners + faces)
    return folder


def named(text):
    return {name for name in [*BAD, *GOOD, "million.obj"] if name in text}


def train(program, media, results, loss, *flags):
    """Eight steps; what is named on stderr or in the ledger, which are all that are bad and none that is good."""
    command = [program, media, "--results-folder", results, "--checkpoint-folder", results, "--num-train-steps", "8", "--batch-size", "3",
               "--valid-frac", "0.15", "--val-every", "4", "--max-error-share", "0.9", "--threads", "1", "--workers", "2", "--checkpoint-every", "8", *flags]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=told)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        text = told.read()
    if process.returncode != 0:
        sys.exit(f"{program} ended with {process.returncode}: {text}")
    lines = [json.loads(line) for line in (results / "metrics.jsonl").read_text().splitlines()]
    losses = [line[loss] for line in lines if loss in line]
    if len(losses) != 8 or not all(map(math.isfinite, losses)):
        sys.exit(f"{program}: the losses are {losses}")
    errors = results / "errors.jsonl"
    names = named(text + (errors.read_text() if errors.exists() else ""))
    if names != {*BAD, "million.obj"}:
        sys.exit(f"{program}: named are {sorted(names)}, not {sorted([*BAD, 'million.obj'])}: {text}")
    if usage.ru_maxrss / 1000 > MOST_MB:
        sys.exit(f"{program}: it took {usage.ru_maxrss // 1000} MB, more than {MOST_MB}")
    return usage.ru_maxrss // 1000


def main():
    with temporary() as place:
        place = pathlib.Path(place)
        media = make_folder(place / "media")
        results = place / "results"
        memory = [train(AUTOENCODER, media, results, "total_loss", *MODEL)]
        model = results / "mesh-autoencoder.ckpt.1.pt"
        out = place / "codes.arrow"
        made = preprocess("tokens", media, "--model", model, "--max-faces", "100", "--out", out)
        left = {pathlib.Path(line["source"]).name for line in ledger(out)}
        if left != {*BAD, "million.obj"}:
            sys.exit(f"preprocess left out {sorted(left)} (code {made.returncode}): {made.stderr}")
        memory.append(train(TRANSFORMER, media, place / "transformer", "loss", "--autoencoder", model, "--dim", "16", "--attn-depth", "1", "--attn-heads", "2",
                            "--attn-dim-head", "8", "--fine-attn-depth", "1", "--max-seq-len", "600"))
        print(f"{len(GOOD) + 8} odd meshes trained on twice ({memory} MB) and tokenized, left out: {sorted(left)}")


if __name__ == "__main__":
    main()
