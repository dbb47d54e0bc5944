"""Exchanges weights between train_nuwa_vae, train_nuwa and the Python trainers (packages: requirements.txt). Run by hand:

usage: python python_nuwa_trainer.py --bin build/release/bin        trains with both, loads each other's files, compares losses
"""
import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from PIL import Image

from both_ways import Check
from make_fixtures import TinyVGG
from nuwa_pytorch import NUWA, VQGanVAE
from nuwa_pytorch import nuwa_pytorch as module, train_nuwa, train_vqgan_vae

module.tqdm = lambda steps: steps
# Tokens are bytes, as in train_nuwa without --bpe.
train_nuwa.tokenizer = types.SimpleNamespace(encode=lambda text: [1 + byte for byte in text.encode()], decode=lambda tokens: str(tokens.tolist()))
COUNT, STEPS, BATCH, SIDE, FRAMES = 10, 3, 2, 16, 2
VAE = dict(dim=16, image_size=SIDE, num_layers=2, vq_codebook_size=24, vq_codebook_dim=32, attn_dim_head=4, attn_heads=2)
CONFIG = dict(dim=16, max_video_frames=FRAMES, text_num_tokens=257, text_max_seq_len=16, text_enc_depth=1, text_enc_dim_head=8, text_enc_heads=2, dec_depth=2,
              dec_dim_head=8, dec_heads=2, enc_reversible=True)


def flags(config):
    return [part for key, value in config.items() for part in ("--" + key.replace("_", "-"), str(value).lower())]


SHARED = ["--num-train-steps", STEPS, "--batch-size", BATCH, "--grad-accum-every", 1, "--valid-frac", 0.2, "--threads", 1, "--quiet", "--save-results-every", 1,
          "--save-model-every", STEPS]


def make_media(folder):
    """Makes pictures, and GIFs with captions."""
    rng = numpy.random.default_rng(0)
    noise = lambda: Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), dtype=numpy.uint8))
    for name in ("pictures", "gifs"):
        (folder / name).mkdir(parents=True)
    for i in range(COUNT):
        noise().save(folder / "pictures" / f"{i:02}.png")
        frames = [noise() for _ in range(FRAMES)]
        frames[0].save(folder / "gifs" / f"{i:02}.gif", save_all=True, append_images=frames[1:])
        (folder / "gifs" / f"{i:02}.txt").write_text(f"clip {'x' * (i % 3)}{i}")
    return folder


def quietly(call):
    with contextlib.redirect_stdout(io.StringIO()):
        return call()


def new_vae():
    torch.manual_seed(0)
    return VQGanVAE(vgg=TinyVGG(), **VAE)


def held_out(folder, pattern):
    """The files that both trainers hold out for validation."""
    files = sorted(folder.glob(pattern))
    train = int((1 - 0.2) * len(files))
    return [files[i] for i in torch.utils.data.random_split(range(len(files)), [train, len(files) - train], generator=torch.Generator().manual_seed(42))[1]]


def run_here(bin, program, data, results, *more):
    """Runs our program and returns its last validation loss."""
    command = [bin / program, data, "--results-folder", results, *SHARED, *more]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (results / "metrics.jsonl").read_text().splitlines()]
    return [line["valid_loss"] for line in lines if "valid_loss" in line][-1]


def differences(ours, theirs):
    """Number of tensors that differ or that only one side has."""
    return sum(not torch.allclose(ours[k].double(), theirs[k].double(), atol=1e-6) for k in ours.keys() & theirs.keys()) + len(ours.keys() ^ theirs.keys())


def vae_both_ways(check, bin, media, folder):
    trainer = quietly(lambda: train_vqgan_vae.VQGanVAETrainer(
        new_vae(), num_train_steps=STEPS, lr=1e-3, batch_size=BATCH, grad_accum_every=1, folder=str(media / "pictures"), valid_frac=0.2,
        save_model_every=1, save_results_every=10**9, results_folder=str(folder / "python")))
    quietly(lambda: [trainer.train_step() for _ in range(STEPS)])
    theirs = folder / "python" / f"vae.{STEPS - 1}.pt"
    # With a learning rate of 0 and a codebook decay of 1 the weights do not change.
    still = ["--lr", 0, "--vq-decay", 1]
    run_here(bin, "train_nuwa_vae", media / "pictures", folder / "still", *flags(VAE), *still, "--weights", theirs)
    load = lambda path: torch.load(path, weights_only=True)
    check("Python's VAE here", differences(load(folder / "still" / f"vae.{STEPS - 1}.pt"), load(theirs)), 0)
    loss = run_here(bin, "train_nuwa_vae", media / "pictures", folder / "ours", *flags(VAE), "--lr", 1e-3)
    vae = new_vae()
    vae.load_state_dict(load(folder / "ours" / f"vae.{STEPS - 1}.pt"), strict=True)
    vae.eval()
    img = torch.stack([torch.from_numpy(numpy.array(Image.open(path))).permute(2, 0, 1) / 255 for path in held_out(media / "pictures", "*.png")])
    with torch.no_grad():
        check("our VAE's loss in Python", abs(torch.nn.functional.l1_loss(vae(img), img).item() - loss))
    return theirs, folder / "ours" / f"vae.{STEPS - 1}.pt"


def trainer_in_python(vae, media, folder):
    torch.manual_seed(1)
    return quietly(lambda: train_nuwa.NUWATrainer(
        nuwa=NUWA(vae=vae, **CONFIG), dataset=train_nuwa.GifVideoDataset(folder=media / "gifs", channels=3), num_train_steps=STEPS, batch_size=BATCH,
        grad_accum_every=1, save_model_every=1, save_results_every=STEPS, results_folder=str(folder)))


def loss_in_python(nuwa, media):
    """The loss of the held-out clips, in one batch."""
    nuwa.eval()
    data = train_nuwa.GifVideoDataset(folder=media / "gifs", channels=3)
    data.path_stems = [str(path.with_suffix("")) for path in held_out(media / "gifs", "*.gif")]
    text, video = train_nuwa.pad_collate_fn([data[i] for i in range(len(data))])
    with torch.no_grad():
        return nuwa(text=text, video=video, return_loss=True, cond_dropout_prob=0.0).item()


def nuwa_both_ways(check, bin, media, folder, their_vae, our_vae):
    (folder / "vae.json").parent.mkdir(parents=True)
    (folder / "vae.json").write_text(json.dumps(VAE))
    load = lambda path: torch.load(path, weights_only=True)
    vae = new_vae()
    vae.load_state_dict(load(their_vae))
    trainer = trainer_in_python(vae, media, folder / "python")
    quietly(lambda: [trainer.train_step() for _ in range(STEPS)])
    theirs = folder / "python" / f"nuwa.{STEPS - 1}.pt"
    loss = run_here(bin, "train_nuwa", media / "gifs", folder / "still", *flags(CONFIG), "--lr", 0, "--weights", theirs, "--vae", their_vae,
                    "--vae-config", folder / "vae.json")
    check("Python's NUWA here", differences(load(folder / "still" / f"nuwa.{STEPS - 1}.pt"), load(theirs)), 0)
    check("Python's NUWA's loss here", abs(loss - quietly(lambda: loss_in_python(trainer.nuwa, media))))
    # The configuration of our VAE is in the config.toml beside it.
    loss = run_here(bin, "train_nuwa", media / "gifs", folder / "ours", *flags(CONFIG), "--lr", 1e-3, "--vae", our_vae)
    trainer = trainer_in_python(new_vae(), media, folder / "again")
    trainer.nuwa.load_state_dict(load(folder / "ours" / f"nuwa.{STEPS - 1}.pt"), strict=True)
    check("our NUWA's loss in Python", abs(quietly(lambda: loss_in_python(trainer.nuwa, media)) - loss))
    logged = quietly(trainer.train_step)
    check("it goes on there, and samples", 0 if numpy.isfinite(logged["loss"]) and logged["sampled_video"].shape[0] == FRAMES else 1, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    bin = parser.parse_args().bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        media, check = make_media(folder / "media"), Check(folder)
        nuwa_both_ways(check, bin, media, folder / "nuwa", *vae_both_ways(check, bin, media, folder / "vae"))
        sys.exit(f"{check.failed} failed" if check.failed else 0)


if __name__ == "__main__":
    main()
