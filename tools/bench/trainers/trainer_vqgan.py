"""Trains a VQGAN with the trainer of muse-maskgit-pytorch and prints one JSON line for train.py.

usage: trainer_vqgan.py --folder PICTURES --steps 40 --warm 5 --batch 4 --size 128 --threads 2 --model JSON --vgg FILE
"""
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings

from trainer_common import Clock, arguments

warnings.filterwarnings("ignore")


def main():
    args = arguments(__doc__, size=int, vgg=str)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    import vgg as vgg_file
    from muse_maskgit_pytorch import VQGanVAE, VQGanVAETrainer

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    vae = VQGanVAE(**json.loads(args.model), vgg=vgg_file.load(args.vgg))
    with tempfile.TemporaryDirectory() as results, contextlib.redirect_stdout(sys.stderr):
        # Results and weights are written at step 0 only, which is not measured.
        trainer = VQGanVAETrainer(vae, folder=args.folder, num_train_steps=args.warm + args.steps, batch_size=args.batch,
                                  image_size=args.size, results_folder=results, save_results_every=10**9,
                                  save_model_every=10**9)
        data = Clock()
        trainer.dl_iter = data.iterator(trainer.dl_iter)
        for _ in range(args.warm):
            trainer.train_step()
        data.seconds, start = 0.0, time.perf_counter()
        for _ in range(args.steps):
            logs = trainer.train_step()
        seconds = time.perf_counter() - start
    print(json.dumps({"peer": "muse-maskgit-pytorch", "steps_per_s": args.steps / seconds,
                      "data_wait": data.seconds / seconds, "loss": logs["loss"]}))


main()
