"""Trains a VQGAN with the trainer of muse-maskgit-pytorch and prints one JSON line, as train.py expects it.

usage: trainer_vqgan.py --folder PICTURES --steps 40 --warm 5 --batch 4 --size 128 --threads 2 --model JSON --vgg FILE
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": str, "steps": int, "warm": int, "batch": int, "size": int, "threads": int,
                       "model": str, "vgg": str}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    return parser.parse_args()


class Waits:
    """An iterator that measures how long its consumer waits."""

    def __init__(self, inner):
        self.inner, self.seconds = inner, 0.0

    def __next__(self):
        start = time.perf_counter()
        item = next(self.inner)
        self.seconds += time.perf_counter() - start
        return item


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    import vgg as vgg_file
    from muse_maskgit_pytorch import VQGanVAE, VQGanVAETrainer

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    vae = VQGanVAE(**json.loads(args.model), vgg=vgg_file.load(args.vgg))
    with tempfile.TemporaryDirectory() as results, contextlib.redirect_stdout(sys.stderr):
        # Results and weights at step 0 only, which is not timed.
        trainer = VQGanVAETrainer(vae, folder=args.folder, num_train_steps=args.warm + args.steps, batch_size=args.batch,
                                  image_size=args.size, results_folder=results, save_results_every=10**9,
                                  save_model_every=10**9)
        trainer.dl_iter = waits = Waits(trainer.dl_iter)
        for _ in range(args.warm):
            trainer.train_step()
        waits.seconds, start = 0.0, time.perf_counter()
        for _ in range(args.steps):
            logs = trainer.train_step()
        seconds = time.perf_counter() - start
    print(json.dumps({"peer": "muse-maskgit-pytorch", "steps_per_s": args.steps / seconds,
                      "data_wait": waits.seconds / seconds, "loss": logs["loss"]}))


main()
