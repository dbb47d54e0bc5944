"""Exchanges weights between train_vqgan and the Python trainer (packages: requirements.txt). Run by hand:

usage: python python_trainer.py --bin build/release/bin        trains with both, loads each other's files, compares
       python python_trainer.py --fixture tests/training/python_trainer      writes the files for weights_test.cc
"""
import contextlib
import io
import json
import pathlib
import subprocess
import tempfile
import warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from PIL import Image
from ema_pytorch import EMA
from muse_maskgit_pytorch import VQGanVAE, VQGanVAETrainer

import both_ways
from both_ways import relative
from make_fixtures import TinyVGG

CONFIGS = [
    dict(dim=16, layers=1, codebook_size=16, discr_layers=0, encdec_num_resnet_blocks=0),
    dict(dim=32, layers=3, codebook_size=1024, discr_layers=2, l2_recon_loss=True, use_hinge_loss=False),
    dict(dim=48, layers=2, codebook_size=64, discr_layers=1, encdec_layer_mults=[2, 3], encdec_resnet_groups=8),
]
SIZE, STEPS = 32, 4


def make_pictures(folder, count=24):
    folder.mkdir(parents=True)
    rng = numpy.random.default_rng(0)
    for i in range(count):
        Image.fromarray(rng.integers(0, 256, (6, 7, 3), dtype=numpy.uint8)).resize((40, 44)).save(folder / f"{i}.jpg")
    return folder


def build(config):
    return VQGanVAE(vgg=TinyVGG(), **config)


def train_in_python(config, pictures, results):
    torch.manual_seed(0)
    trainer = VQGanVAETrainer(build(config), folder=str(pictures), num_train_steps=STEPS, batch_size=4, image_size=SIZE,
                              results_folder=str(results), valid_frac=0.25, save_results_every=100, save_model_every=STEPS - 1)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    trainer.save(str(results / "trainer.pt"))
    return trainer


def reconstruct(model, img):
    model.eval()
    with torch.no_grad():
        return model(img, return_recons=True)


def from_python(check, bin, config, pictures, results, img):
    trainer = train_in_python(config, pictures, results)
    raw, average = reconstruct(trainer.vae, img), reconstruct(trainer.ema_vae.ema_model, img)
    last = STEPS - 1
    for name, wanted in ((f"vae.{last}.pt", raw), (f"vae.{last}.ema.pt", average), ("trainer.pt", raw)):
        check(f"Python's {name} here", relative(check.by_ours(bin / "reconstruct", results / name, config, img), wanted))


def to_python(check, bin, config, pictures, results, img):
    flags = []
    for key, value in config.items():
        flags += ["--" + key.replace("_", "-"), *(map(str, value) if isinstance(value, list) else [str(value).lower()])]
    subprocess.run([bin / "train_vqgan", pictures, "--results-folder", results, "--num-train-steps", str(STEPS), "--batch-size", "4",
                    "--image-size", str(SIZE), "--valid-frac", "0.25", "--quiet", *flags], check=True, stdout=subprocess.DEVNULL)
    load = lambda name: torch.load(results / name, weights_only=True)
    last, model = STEPS - 1, build(config)
    model.load_state_dict(load(f"vae.{last}.pt"))
    check(f"our vae.{last}.pt in Python", relative(reconstruct(model, img), check.by_ours(bin / "reconstruct", results / f"vae.{last}.pt", config, img)))
    ema = EMA(VQGanVAE(**config))  # if the model contains a VGG, the package cannot load even its own file
    ema.load_state_dict(load(f"vae.{last}.ema.pt"))
    check(f"our vae.{last}.ema.pt in Python",
          relative(reconstruct(ema.ema_model, img), check.by_ours(bin / "reconstruct", results / f"vae.{last}.ema.pt", config, img)))
    whole = load(f"checkpoint.{STEPS}.pt")
    model.load_state_dict(whole["model"])
    discr = list(model.discr.parameters())
    others = [p for n, p in model.named_parameters() if not n.startswith(("discr.", "_vgg."))]
    for key, parameters in (("optim", others), ("discr_optim", discr)):
        optimizer = torch.optim.Adam(parameters, lr=1.0)
        optimizer.load_state_dict(whole[key])
        shapes = all(optimizer.state[p]["exp_avg"].shape == p.shape for p in parameters)
        check(f"our {key} in torch.optim.Adam, lr and shapes", abs(optimizer.param_groups[0]["lr"] - 3e-4) + (not shapes))


def write_fixture(folder):
    """Writes the files of a tiny trainer and its reconstructions of two pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        trainer = train_in_python(CONFIGS[0], make_pictures(temporary / "pictures"), temporary / "results")
        folder.mkdir(parents=True, exist_ok=True)
        for name in (f"vae.{STEPS - 1}.pt", f"vae.{STEPS - 1}.ema.pt", "trainer.pt"):
            (folder / name).write_bytes((temporary / "results" / name).read_bytes())
    img = torch.rand(2, 3, 16, 24)
    torch.save({"config": json.dumps(CONFIGS[0]), "img": img, "raw": reconstruct(trainer.vae, img),
                "average": reconstruct(trainer.ema_vae.ema_model, img)}, folder / "reconstructions.pt")


def compare(check, bin, folder):
    pictures = make_pictures(folder / "pictures")
    for i, config in enumerate(CONFIGS):
        print(json.dumps(config))
        img = torch.rand(2, 3, SIZE, SIZE + 16)
        from_python(check, bin, config, pictures, folder / f"python{i}", img)
        to_python(check, bin, config, pictures, folder / f"ours{i}", img)


if __name__ == "__main__":
    both_ways.main(__doc__, write_fixture, compare)
