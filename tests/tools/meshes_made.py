"""generate, end to end: sample meshes, two tiny models trained on them for a moment, and generated meshes. Files
are opened by trimesh, the sheet by Pillow; the same seed gives the same bytes; wrong calls get one clear line."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import trimesh
from PIL import Image

from faults import must, temporary

ROOT = pathlib.Path(__file__).parent.parent.parent
BIN = pathlib.Path(os.environ["GENERATE"]).parent
SMALL = ["--batch-size", 4, "--num-train-steps", 2, "--threads", 1, "--workers", 1, "--warmup-steps", 0, "--val-every", 2, "--quiet"]


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def run(program, *arguments):
    return subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, timeout=200)


def train(folder, meshes):
    autoencoder, transformer = folder / "autoencoder", folder / "transformer"
    must(run("train_mesh_autoencoder", meshes, "--results-folder", autoencoder, "--checkpoint-folder", autoencoder, *SMALL,
             "--encoder-dims-through-depth", 8, 8, "--decoder-dims-through-depth", 8, 8, "--dim-codebook", 8,
             "--codebook-size", 16, "--dim-coor-embed", 4, "--dim-area-embed", 4, "--dim-normal-embed", 4,
             "--dim-angle-embed", 4, "--num-discrete-coors", 32))
    code = autoencoder / "mesh-autoencoder.ckpt.1.pt"
    must(run("train_mesh_transformer", meshes, "--autoencoder", code, "--results-folder", transformer,
             "--checkpoint-folder", transformer, *SMALL, "--dim", 16, "--attn-depth", 1, "--attn-heads", 2, "--attn-dim-head", 8,
             "--fine-attn-depth", 1, "--coarse-pre-gateloop-depth", 1, "--fine-pre-gateloop-depth", 1,
             "--max-seq-len", 1200, "--condition-on-text", "true"))
    # Of the texts that are held out: one of twelve.
    check(Image.open(transformer / "sampled.1.png").size == (196 + 4, 196 + 4), "a sheet of what the transformer writes in the end")
    check(len(list(transformer.glob("sampled.1.*.obj"))) == 1, "and the mesh itself")
    return code, transformer / "mesh-transformer.ckpt.1.pt"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def opened(folder, pattern):
    """The faces of each file, as trimesh reads them."""
    return {path.name: len(trimesh.load(path, process=False, force="mesh").faces) for path in sorted(folder.glob(pattern))
            if path.stat().st_size > 0}


def one_line(process, *words):
    must(process, 2)
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    check(len(lines) == 1 and all(word in lines[0] for word in words), f"expected one line with {words}, got:\n{process.stderr}")
    print("  2 ", lines[0])


with temporary() as place:
    folder = pathlib.Path(place)
    meshes = folder / "meshes"
    subprocess.run([sys.executable, str(ROOT / "tools/samples/sample_meshes.py"), str(meshes), "--count", "12", "--kinds", "box", "pyramid", "star",
                    "--max-faces", "60"], check=True, capture_output=True)
    autoencoder, transformer = train(folder, meshes)

    made = folder / "reconstructed"
    must(run("generate", "--model", autoencoder, "--meshes", meshes, "--out", made, "--count", 5, "--side", 64))
    real = opened(made, "*.real.obj")
    check(len(real) == 5 and min(real.values()) >= 4, f"five meshes as they are, not {real}")
    check(len(list(made.glob("*.reconstructed.obj"))) == 5, "five reconstructions")
    check(Image.open(made / "sheet.png").size == (2 * 68 + 4, 5 * 68 + 4), "a sheet of five rows of two")

    flags = ["--model", transformer, "--text", "a star", "a box", "--count", 3, "--max-faces", 12, "--cond-scale", 2, "--side", 64]
    for name, more in {"one": [], "again": [], "other": ["--seed", 7], "ply": ["--format", "ply"]}.items():
        must(run("generate", *flags, *more, "--out", folder / name))
    check(contents(folder / "one") == contents(folder / "again"), "the same seed makes the same")
    check(contents(folder / "one") != contents(folder / "other"), "another seed makes something else")
    check((folder / "one/made_002.txt").read_text() == "a star\n", "texts beside their meshes")
    check(max([*opened(folder / "ply", "*.ply").values(), 0]) <= 12, "no more faces than asked for")
    check(Image.open(folder / "one/sheet.png").size == (3 * 68 + 4, 68 + 4), "a sheet of one row of three")

    one_line(run("generate", "--model", autoencoder, "--out", folder / "x"), "mesh-autoencoder.ckpt.1.pt", "needs --meshes")
    one_line(run("generate", "--model", autoencoder, "--meshes", folder / "nowhere", "--out", folder / "x"), "nowhere")
    (folder / "words.pt").write_text("this is no checkpoint")
    (folder / "cut.pt").write_bytes(transformer.read_bytes()[:5000])
    for name, words in {"nowhere.pt": "No such file", "words.pt": "", "cut.pt": ""}.items():
        one_line(run("generate", "--model", folder / name, "--out", folder / "unmade"), name, words)
        one_line(run("train_mesh_transformer", meshes, "--autoencoder", folder / name, *SMALL, "--results-folder", folder / "y"), name, words)
    check(not (folder / "unmade").exists(), "nothing is made of what cannot be read")
    one_line(run("generate", "--model", transformer, "--out", folder / "x", "--top-p", 3), "--top-p must be 0 to 1")
print("meshes are made, reconstructed, drawn and opened by others")
