"""Exchanges checkpoints between train_mesh_transformer and the Python trainer (packages: requirements.txt). Run by hand:

usage: python python_mesh_transformer_trainer.py --bin build/release/bin        trains with both, loads each other's files, continues training
"""
import argparse
import contextlib
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
import torch
from meshgpt_pytorch import MeshAutoencoder, MeshTransformer, MeshTransformerTrainer
from meshgpt_pytorch import meshgpt_pytorch as module

from both_ways import Check

module.tqdm = lambda steps: steps
AUTOENCODER = dict(encoder_dims_through_depth=[8, 12], decoder_dims_through_depth=[8, 12], dim_codebook=8, dim_coor_embed=4, dim_area_embed=4, dim_normal_embed=4,
                   dim_angle_embed=4, num_discrete_coors=16, num_discrete_area=8, num_discrete_normals=8, num_discrete_angle=8, codebook_size=16)
CONFIG = dict(dim=16, max_seq_len=120, attn_depth=1, attn_dim_head=8, attn_heads=2, fine_attn_depth=1, coarse_pre_gateloop_depth=1, fine_pre_gateloop_depth=1)
FLAGS = [part for key, value in CONFIG.items() for part in ("--" + key.replace("_", "-"), str(value))]
STEPS, WARMUP, RATE = 3, 2, 1e-3


def some_meshes(count=12):
    rng = random.Random(0)
    for i in range(count):
        n = 4 + i % 5
        vertices = [[rng.uniform(-0.9, 0.9) for _ in range(3)] for _ in range(n)]
        yield vertices, [rng.sample(range(n), 3) for _ in range(3 + i % 7)]


def make_meshes(folder):
    folder.mkdir(parents=True)
    for i, (vertices, faces) in enumerate(some_meshes()):
        lines = ["v " + " ".join(map(str, v)) for v in vertices] + ["f " + " ".join(str(c + 1) for c in f) for f in faces]
        (folder / f"{i}.obj").write_text("\n".join(lines) + "\n")
    return folder


def autoencoder():
    torch.manual_seed(0)
    return MeshAutoencoder(**{k: tuple(v) if isinstance(v, list) else v for k, v in AUTOENCODER.items()})


class Meshes(torch.utils.data.Dataset):
    data_kwargs = ["vertices", "faces"]

    def __init__(self):
        self.all = [(torch.tensor(v), torch.tensor(f)) for v, f in some_meshes()]

    def __len__(self):
        return len(self.all)

    def __getitem__(self, index):
        return self.all[index]


def trainer_in_python(folder, steps):
    torch.manual_seed(1)
    return MeshTransformerTrainer(MeshTransformer(autoencoder(), **CONFIG), dataset=Meshes(), num_train_steps=steps, batch_size=2, grad_accum_every=1, learning_rate=RATE,
                                  warmup_steps=WARMUP, checkpoint_every=STEPS, checkpoint_folder=str(folder), accelerator_kwargs=dict(cpu=True))


def train_here(bin, meshes, file, folder, steps, *more, rate=RATE):
    subprocess.run([bin / "train_mesh_transformer", meshes, "--autoencoder", file, "--results-folder", folder / "results", "--checkpoint-folder", folder / "checkpoints",
                    "--num-train-steps", str(steps), "--batch-size", "2", "--valid-frac", "0.25", "--learning-rate", str(rate), "--warmup-steps", str(WARMUP),
                    "--checkpoint-every", str(steps), "--quiet", *FLAGS, *more], check=True, stdout=subprocess.DEVNULL)
    return folder / "checkpoints" / "mesh-transformer.ckpt.1.pt"


def to_python(check, bin, meshes, file, folder):
    """The Python trainer loads our checkpoint with its own load() and continues with the right learning rate."""
    path = train_here(bin, meshes, file, folder, STEPS)
    trainer = trainer_in_python(folder / "python", STEPS + 2)
    saved = torch.load(path, weights_only=True)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that the version differs
        pkg = dict(saved, step=torch.tensor(saved["step"]))  # without this the package cannot load even its own files: step.copy_(int)
        torch.save(pkg, folder / "for_python.pt")
        trainer.load(str(folder / "for_python.pt"))
    check("step", abs(trainer.step.item() - STEPS))
    state = trainer.model.state_dict()
    check("our model in Python", sum(not torch.equal(state[k], saved["model"][k]) for k in state) + (list(state) != list(saved["model"])), 0)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer()
    rates = [group["lr"] for group in trainer.optimizer.optimizer.param_groups]
    check("the learning rate that Python goes on with", max(abs(rate - RATE) for rate in rates), 1e-9)
    check("all weights are finite after that", sum(not p.isfinite().all() for p in trainer.model.state_dict().values()), 0)


def from_python(check, bin, meshes, file, folder):
    """Uses Python's checkpoint as --weights: only the weights are loaded, and training starts with them."""
    trainer = trainer_in_python(folder / "python", STEPS)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer()
    theirs = folder / "python" / "mesh-transformer.ckpt.1.pt"
    path = train_here(bin, meshes, file, folder / "here", 1, "--weights", theirs, rate=0)
    theirs, ours = (torch.load(p, weights_only=True)["model"] for p in (theirs, path))
    check("Python's model here", sum(not torch.equal(theirs[k], ours[k]) for k in theirs) + (list(theirs) != list(ours)), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        meshes, check = make_meshes(folder / "meshes"), Check(folder)
        file = folder / "autoencoder.pt"
        torch.save({"model": autoencoder().state_dict(), "config": json.dumps(AUTOENCODER)}, file)
        to_python(check, args.bin.resolve(), meshes, file, folder / "ours")
        from_python(check, args.bin.resolve(), meshes, file, folder / "theirs")
        sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
