"""Exchanges checkpoints between train_mulan and the Python trainer (packages: requirements.txt). Run by hand:

usage: python python_mulan_trainer.py --bin build/release/bin        trains with both, loads each other's files, continues training
"""
import argparse
import contextlib
import io
import pathlib
import subprocess
import tempfile
import wave

import numpy
import torch

from make_mulan_fixtures import build
from musiclm_pytorch import MuLaNTrainer

RATE, SAMPLES, BATCH, STEPS = 8000, 300, 3, 4
CONFIG = dict(audio=dict(dim=8, depth=2, heads=2, dim_head=4, patch_size=8, spec_n_fft=32, spec_aug_freq_mask=0, spec_aug_time_mask=0, patch_dropout_prob=0.0),
              text=dict(dim=8, depth=2, heads=2, dim_head=4, num_tokens=257, max_seq_len=32), dim_latent=6)
FLAGS = ["--audio-dim", "8", "--audio-depth", "2", "--audio-heads", "2", "--audio-dim-head", "4", "--patch-size", "8", "--spec-n-fft", "32",
         "--spec-aug-freq-mask", "0", "--spec-aug-time-mask", "0", "--patch-dropout-prob", "0", "--text-dim", "8", "--text-depth", "2",
         "--text-heads", "2", "--text-dim-head", "4", "--text-max-seq-len", "32", "--dim-latent", "6", "--sample-rate", str(RATE),
         "--data-max-length", str(SAMPLES), "--batch-size", str(BATCH), "--valid-frac", "0.2", "--threads", "1", "--quiet"]


class Pairs(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.wav"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with wave.open(str(self.paths[i])) as sound:
            samples = numpy.frombuffer(sound.readframes(SAMPLES), "<i2").astype("f4") / 32768
        tokens = [1 + byte for byte in self.paths[i].with_suffix(".txt").read_bytes()]
        return torch.from_numpy(samples), torch.tensor(tokens + [0] * (20 - len(tokens)))


def make_sounds(folder, count=12):
    folder.mkdir(parents=True)
    rng = numpy.random.default_rng(0)
    for i in range(count):
        with wave.open(str(folder / f"{i:02}.wav"), "wb") as sound:
            sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(RATE)
            sound.writeframes((rng.random(SAMPLES) * 20000 - 10000).astype("<i2").tobytes())
        (folder / f"{i:02}.txt").write_text(f"sound number {i}")
    return folder


def trainer_in_python(sounds, folder):
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        return MuLaNTrainer(build(CONFIG), Pairs(sounds), num_train_steps=STEPS, batch_size=BATCH, valid_frac=0.2, results_folder=str(folder),
                            save_model_every=1, force_clear_prev_results=False)


def train_here(bin, sounds, folder, *more):
    subprocess.run([bin / "train_mulan", sounds, "--results-folder", folder, "--num-train-steps", str(STEPS), *FLAGS, *more],
                   check=True, stdout=subprocess.DEVNULL)
    return torch.load(folder / f"mulan.{STEPS - 1}.pt", weights_only=True)


def same(what, ours, theirs):
    worst = max((ours[key].double() - theirs[key].double()).abs().max().item() for key in theirs)
    assert ours.keys() == theirs.keys() and worst < 1e-6, (what, worst, ours.keys() ^ theirs.keys())
    print(f"{what}: {len(theirs)} tensors, largest difference {worst:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    bin = parser.parse_args().bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sounds = make_sounds(folder / "sounds")
        # The Python trainer loads our file and continues.
        here = train_here(bin, sounds, folder / "here")
        trainer = trainer_in_python(sounds, folder / "there")
        trainer.load(folder / "here" / f"mulan.{STEPS - 1}.pt")
        same("our weights in Python", dict(trainer.mulan.state_dict()), here["model"])
        moments = trainer.optim.state_dict()["state"]
        assert len(moments) == len(here["optim"]["state"]) > 0
        for i, moment in moments.items():
            assert torch.equal(moment["exp_avg"], here["optim"]["state"][i]["exp_avg"]), i
        print(f"our optimizer state in Python: {len(moments)} parameters")
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
        # Our trainer loads Python's file. With a learning rate of 0 the weights do not change.
        trainer.save(folder / "python.pt")
        saved = torch.load(folder / "python.pt", weights_only=True)
        back = train_here(bin, sounds, folder / "back", "--weights", folder / "python.pt", "--lr", "0")
        same("Python's weights in our trainer", back["model"], saved["model"])
        assert back["optim"]["param_groups"][0].keys() >= {"lr", "betas", "eps", "params"}


main()
