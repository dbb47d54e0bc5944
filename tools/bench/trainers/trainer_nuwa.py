"""Trains NUWA with the trainer of nuwa-pytorch, or encodes clips with its VAE, and prints one JSON line for train.py.

usage: trainer_nuwa.py --folder GIFS --steps 10 --warm 3 --batch 4 --accum 1 --threads 2 --model JSON [--vae FILE] [--codes FILE [--at-once 8]]

--codes FILE: runs convert_video_tensor_dataset_to_indices instead of training; with --at-once in batches of clips. --save FILE: writes the untrained VAE and exits.
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings

from trainer_common import Clock

warnings.filterwarnings("ignore")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": str, "steps": int, "warm": int, "batch": int, "accum": int, "threads": int, "model": str}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    for name in ("vae", "codes", "save"):
        parser.add_argument("--" + name)
    parser.add_argument("--at-once", type=int, default=1)
    return parser.parse_args()


def convert(args, vae, data, frames):
    """Encodes the clips and returns the time in seconds."""
    import numpy
    import torch
    from nuwa_pytorch import train_nuwa as package
    start = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        if args.at_once == 1:
            package.convert_video_tensor_dataset_to_indices(vae=vae, raw_video_dataset=data, num_frames=frames, path=args.codes)
            return time.perf_counter() - start
    side = vae.image_size // 2**vae.num_layers
    codes = numpy.memmap(args.codes, mode="w+", dtype=numpy.int64, shape=(len(data), frames * side * side))
    for first in range(0, len(data), args.at_once):
        clips = torch.stack([data[i][1] for i in range(first, min(first + args.at_once, len(data)))])
        codes[first:first + len(clips)] = vae.get_video_indices(clips).flatten(1).numpy()
    return time.perf_counter() - start


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    from nuwa_pytorch import NUWA, VQGanVAE
    from nuwa_pytorch import train_nuwa as package

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = json.loads(args.model)
    config = model.pop("vae")
    vae = VQGanVAE(**config)
    if args.save:
        return torch.save({"model": vae.state_dict(), "config": json.dumps(config)}, args.save)
    if args.vae:
        vae.load_state_dict(torch.load(args.vae)["model"])
    data = package.GifVideoDataset(folder=args.folder, channels=config["channels"])
    if args.codes:
        return print(json.dumps({"items_per_s": len(data) / convert(args, vae, data, model["max_video_frames"]), "data_wait": 0}))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trainer = package.NUWATrainer(nuwa=NUWA(vae=vae, **model), dataset=data, num_train_steps=args.warm + args.steps, batch_size=args.batch,
                                      grad_accum_every=args.accum, save_model_every=10**9, save_results_every=10**9, results_folder=folder + "/results")
        wait = Clock()
        trainer.dl = wait.iterator(trainer.dl)
        trainer.steps = 1  # skips step 0, which would write samples and weights
        for _ in range(args.warm):
            trainer.train_step()
        wait.seconds, start = 0.0, time.perf_counter()
        for _ in range(args.steps):
            trainer.train_step()
        seconds = time.perf_counter() - start
    print(json.dumps({"peer": "nuwa-pytorch", "steps_per_s": args.steps / seconds, "data_wait": wait.seconds / seconds}))


main()
