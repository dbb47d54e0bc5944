"""Exchanges checkpoints and tokens between train_mesh_autoencoder and the Python trainer (packages: requirements.txt). Run by hand:

usage: python python_mesh_trainer.py --bin build/release/bin         trains with both, loads each other's files, continues training
       python python_mesh_trainer.py --fixture tests/training/python_trainer      writes the files for weights_test.cc
"""
import contextlib
import io
import json
import pathlib
import random
import subprocess
import tempfile
import warnings

warnings.filterwarnings("ignore")
import torch
from meshgpt_pytorch import MeshAutoencoder, MeshAutoencoderTrainer
from torch.utils.data import Dataset

import both_ways

CONFIG = dict(num_discrete_coors=16, num_discrete_area=8, num_discrete_normals=8, num_discrete_angle=8,
              dim_coor_embed=4, dim_area_embed=2, dim_normal_embed=4, dim_angle_embed=2, encoder_dims_through_depth=(6, 8),
              decoder_dims_through_depth=(8, 6), dim_codebook=8, codebook_size=64, num_quantizers=2)
FLAGS = ["--num-discrete-coors", "16", "--num-discrete-area", "8", "--num-discrete-normals", "8", "--num-discrete-angle", "8", "--dim-coor-embed", "4", "--dim-area-embed", "2", "--dim-normal-embed", "4", "--dim-angle-embed", "2",
         "--encoder-dims-through-depth", "6,8", "--decoder-dims-through-depth", "8,6", "--dim-codebook", "8", "--codebook-size", "64"]
STEPS, WARMUP, RATE = 3, 2, 1e-3
EMA = dict(update_after_step=0, update_every=1)


def make_mesh(i):
    """A fan of triangles, normalised and sorted as the mesh decoder does it: see decoders/mesh/mesh.h."""
    n, chance = 4 + i % 3, random.Random(i)
    vertices = [(0.0, 0.0, -1.0)] + [(chance.uniform(-0.9, 0.9), chance.uniform(-0.9, 0.9), -0.5 + 0.1 * k) for k in range(n - 1)] + [(0.0, 0.0, 1.0)]
    return vertices, sorted((0, k, k + 1) for k in range(1, n))


def make_meshes(folder, count=12):
    folder.mkdir(parents=True)
    for i in range(count):
        vertices, faces = make_mesh(i)
        text = "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in vertices) + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces)
        (folder / f"{i:02d}.obj").write_text(text)
    return folder


class Meshes(Dataset):
    data_kwargs = ["vertices", "faces"]

    def __init__(self, count=12):
        self.meshes = [make_mesh(i) for i in range(count)]

    def __len__(self):
        return len(self.meshes)

    def __getitem__(self, i):
        vertices, faces = self.meshes[i]
        return torch.tensor(vertices), torch.tensor(faces)


def trainer_in_python(folder, steps, weight_decay=0.0):
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        return MeshAutoencoderTrainer(MeshAutoencoder(**CONFIG), dataset=Meshes(), num_train_steps=steps, batch_size=2, grad_accum_every=1, learning_rate=RATE,
                                      warmup_steps=WARMUP, weight_decay=weight_decay, ema_kwargs=EMA, checkpoint_folder=str(folder), checkpoint_every=100,
                                      accelerator_kwargs=dict(cpu=True))


def train_in_python(folder):
    trainer = trainer_in_python(folder, STEPS)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer()
    trainer.save(str(folder / "trainer.pt"))
    return trainer


def train_here(bin, meshes, folder, steps, *more, rate=RATE):
    subprocess.run([bin / "train_mesh_autoencoder", meshes, "--results-folder", folder / "results", "--checkpoint-folder", folder / "checkpoints",
                    "--num-train-steps", str(steps), "--batch-size", "2", "--valid-frac", "0.25", "--learning-rate", str(rate), "--warmup-steps", str(WARMUP),
                    "--ema-update-after-step", "0", "--ema-update-every", "1", "--checkpoint-every", "1", "--quiet", *FLAGS, *more],
                   check=True, stdout=subprocess.DEVNULL)
    return folder / "checkpoints" / f"mesh-autoencoder.ckpt.{steps}.pt"


def to_python(check, bin, meshes, folder, *more, weight_decay=0.0):
    """The Python trainer loads our checkpoint with its own load() and continues with the right learning rate."""
    path = train_here(bin, meshes, folder, STEPS, *more)
    trainer = trainer_in_python(folder / "python", STEPS + 2, weight_decay)
    trainer.load(str(path))
    saved = torch.load(path, weights_only=True)
    check("step", abs(trainer.step.item() - STEPS))
    for name, module in (("model", trainer.model), ("ema_model", trainer.ema_model)):
        state = module.state_dict()
        check(f"our {name} in Python", sum(not torch.equal(state[k], saved[name][k]) for k in state) + (set(state) != set(saved[name])), 0)
    moments = trainer.optimizer.optimizer.state_dict()["state"]
    check("moments of the optimizer", len(saved["optimizer"]["optimizer"]["state"]) - len(moments))
    check("rate", abs(trainer.optimizer.optimizer.param_groups[0]["lr"] - RATE))
    with contextlib.redirect_stdout(io.StringIO()):
        trainer()
    check("step after going on", abs(trainer.step.item() - STEPS - 2))


def cache_of(bin, what, meshes, out, *more):
    import pyarrow

    subprocess.run([bin / "preprocess", what, meshes, "--out", out, "--quiet", *more], check=True, stdout=subprocess.DEVNULL)
    with pyarrow.memory_map(str(out)) as source:
        return pyarrow.ipc.open_file(source).read_all()


def from_python(check, bin, meshes, folder):
    """Uses Python's checkpoint as --weights, and as the model of a token cache."""
    trainer = train_in_python(folder / "python")
    path = folder / "python" / "trainer.pt"
    ours = torch.load(train_here(bin, meshes, folder, 1, "--weights", path, rate=0), weights_only=True)
    theirs = trainer.model.state_dict()
    check("their model here", sum(not torch.equal(theirs[k], ours["model"][k]) for k in theirs), 0)
    seen = cache_of(bin, "meshes", meshes, folder / "meshes.arrow").to_pylist()  # normalised and sorted, as the mesh decoder does it
    for which, model in (("ema", trainer.ema_model.ema_model), ("model", trainer.model)):
        rows = cache_of(bin, "tokens", meshes, folder / f"{which}.arrow", "--model", path, "--weights", which).to_pylist()
        wrong = len(rows) != len(seen)
        for row, mesh in zip(rows, seen):
            wanted = model.tokenize(torch.tensor(mesh["vertices"]).reshape(-1, 3), torch.tensor(mesh["faces"]).reshape(-1, 3)).flatten().tolist()
            wrong += row["tokens"] != wanted or row["face_count"] * 6 != len(wanted)
        check(f"tokens of their {which}, of {len(rows)} meshes", wrong, 0)


def write_fixture(folder):
    with tempfile.TemporaryDirectory() as temporary:
        trainer = train_in_python(pathlib.Path(temporary))
        trainer.save(str(folder / "mesh_autoencoder.pt"))
        vertices, faces = make_mesh(1)
        codes = trainer.ema_model.ema_model.tokenize(torch.tensor(vertices), torch.tensor(faces))
        (folder / "mesh_autoencoder.json").write_text(json.dumps(dict(config=CONFIG, vertices=vertices, faces=faces, codes=codes.flatten().tolist())) + "\n")


def compare(check, bin, folder):
    meshes = make_meshes(folder / "meshes")
    to_python(check, bin, meshes, folder / "here")
    to_python(check, bin, meshes, folder / "decay", "--weight-decay", "0.01", weight_decay=0.01)
    from_python(check, bin, meshes, folder / "there")


if __name__ == "__main__":
    both_ways.main(__doc__, write_fixture, compare)
