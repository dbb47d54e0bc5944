"""Trains MuLaN with the trainer of musiclm-pytorch and prints one JSON line for train.py. The data set decodes sounds with soundfile and
resamples them with torchaudio, as a user of the package would do it. With --embed it computes embeddings instead of training.

usage: trainer_mulan.py --folder SOUNDS --steps 10 --warm 3 --batch 8 --threads 2 --samples 32000 --rate 16000 --model JSON [--embed]
"""
import argparse
import contextlib
import importlib.machinery
import json
import os
import pathlib
import sys
import tempfile
import time
import types
import warnings

from trainer_common import Clock

warnings.filterwarnings("ignore")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": pathlib.Path, "steps": int, "warm": int, "batch": int, "threads": int, "samples": int, "rate": int,
                       "model": str}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    parser.add_argument("--embed", action="store_true")
    return parser.parse_args()


def stand_in(name, **attributes):
    """Replaces classes of audiolm-pytorch that the package imports. MuLaN does not use them, and they cannot be imported with a new Python."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import soundfile
    import torch
    import torchaudio
    stand_in("audiolm_pytorch", AudioLM=torch.nn.Module)
    stand_in("audiolm_pytorch.utils", AudioConditionerBase=torch.nn.Module)
    from musiclm_pytorch import AudioSpectrogramTransformer, MuLaN, MuLaNTrainer, TextTransformer

    class Pairs(torch.utils.data.Dataset):
        """Sounds, and their captions as bytes: the default tokens of train_mulan."""

        def __init__(self):
            self.paths = sorted(path for path in args.folder.iterdir() if path.suffix != ".txt")

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            path = self.paths[index]
            sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
            sound = torchaudio.functional.resample(torch.from_numpy(sound.mean(1)), rate, args.rate)[:args.samples]
            sound = torch.nn.functional.pad(sound, (0, args.samples - len(sound)))
            tokens = torch.tensor([1 + byte for byte in path.with_suffix(".txt").read_bytes().rstrip()])
            # Padded to the longest caption, because the trainer truncates every field to the shortest in the batch.
            return sound, torch.nn.functional.pad(tokens, (0, 64 - len(tokens)))

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = json.loads(args.model)
    audio, text = AudioSpectrogramTransformer(**model.pop("audio")), TextTransformer(**model.pop("text"))
    mulan = MuLaN(audio_transformer=audio, text_transformer=text, **model)
    data, backward, optimizer = Clock(), Clock(), Clock()
    if args.embed:
        mulan.eval()
        pairs = Pairs()
        start = time.perf_counter()
        with torch.no_grad(), contextlib.redirect_stdout(sys.stderr):
            for first in range(0, len(pairs), args.batch):
                sounds = [data.around(pairs.__getitem__)(i)[0] for i in range(first, min(first + args.batch, len(pairs)))]
                mulan.get_audio_latents(torch.stack(sounds))
        seconds = time.perf_counter() - start
        print(json.dumps({"peer": "musiclm-pytorch", "sounds_per_s": len(pairs) / seconds, "data_wait": data.seconds / seconds}))
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trainer = MuLaNTrainer(mulan, Pairs(), num_train_steps=args.warm + args.steps, batch_size=args.batch, results_folder=folder,
                               save_model_every=10**9, force_clear_prev_results=True)
        batches = trainer.dl_iter

        class Batches:
            __next__ = lambda self: data.around(lambda: next(batches))()
        trainer.dl_iter = Batches()
        trainer.accelerator.backward = backward.around(trainer.accelerator.backward)
        trainer.optim.step = optimizer.around(trainer.optim.step)
        trainer.save = lambda path: None
        for _ in range(args.warm):
            trainer.train_step()
        data.seconds = backward.seconds = optimizer.seconds = 0.0
        start = time.perf_counter()
        for _ in range(args.steps):
            trainer.train_step()
        seconds = time.perf_counter() - start
    print(json.dumps({"peer": "musiclm-pytorch", "steps_per_s": args.steps / seconds, "data_wait": data.seconds / seconds,
                      "backward": backward.seconds / seconds, "optimizer": optimizer.seconds / seconds}))


main()
