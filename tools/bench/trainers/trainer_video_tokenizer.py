"""Trains a video tokenizer with the trainer of magvit2-pytorch and prints one JSON line for train.py.

usage: trainer_video_tokenizer.py --folder CLIPS --steps 10 --warm 3 --batch 2 --threads 2 --frames 9 --model JSON --vgg FILE
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
    args = arguments(__doc__, frames=int, vgg=str)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    import vgg as vgg_file
    from magvit2_pytorch import VideoTokenizer, VideoTokenizerTrainer
    from magvit2_pytorch.trainer import cycle

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = json.loads(args.model)
    model["layers"] = tuple(tuple(layer) if isinstance(layer, list) else layer for layer in model["layers"])
    tokenizer = VideoTokenizer(**model, vgg=vgg_file.load(args.vgg))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trainer = VideoTokenizerTrainer(tokenizer, dataset_folder=args.folder, num_train_steps=args.warm + args.steps, batch_size=args.batch,
                                        num_frames=args.frames, results_folder=folder + "/results", checkpoints_folder=folder + "/checkpoints")
        data, backward, optimizer = Clock(), Clock(), Clock()
        batches = data.iterator(cycle(trainer.dataloader))
        trainer.accelerator.backward = backward.around(trainer.accelerator.backward)
        for one in (trainer.optimizer, trainer.discr_optimizer):
            one.step = optimizer.around(one.step)
        trainer.ema_model.update = optimizer.around(trainer.ema_model.update)
        for _ in range(args.warm):
            trainer.train_step(batches)
        data.seconds = backward.seconds = optimizer.seconds = 0.0
        start = time.perf_counter()
        for _ in range(args.steps):
            trainer.train_step(batches)
        seconds = time.perf_counter() - start
    print(json.dumps({"peer": "magvit2-pytorch", "steps_per_s": args.steps / seconds, "data_wait": data.seconds / seconds,
                      "backward": backward.seconds / seconds, "optimizer": optimizer.seconds / seconds}))


main()
