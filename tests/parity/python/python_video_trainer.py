"""Exchanges checkpoints between train_video_tokenizer and the Python trainer (packages: requirements.txt). Run by hand:

usage: python python_video_trainer.py --bin build/release/bin        trains with both, loads each other's files, continues training
       python python_video_trainer.py --fixture tests/training/python_trainer      writes the files for weights_test.cc
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
from torchvision import transforms
from magvit2_pytorch import VideoTokenizerTrainer

import both_ways
from make_video_fixtures import build

# Without a perceptual loss: if the model contains a VGG, the package cannot load even its own file.
CONFIG = dict(image_size=8, layers=["residual", ["compress_space", 6], "compress_time", "attend_time"], codebook_size=16, init_dim=4,
              input_conv_kernel_size=[3, 3, 3], attn_dim_head=4, attn_heads=2, perceptual_loss_weight=0.0,
              discr_kwargs=dict(dim=1, image_size=8, channels=3, max_dim=4, linear_attn_dim_head=2, linear_attn_heads=1))
FRAMES, STEPS, WARMUP, RATE = 5, 3, 2, 1e-3
FLAGS = ["--image-size", "8", "--layers", "'residual', ('compress_space', 6), 'compress_time', 'attend_time'", "--codebook-size", "16",
         "--init-dim", "4", "--input-conv-kernel-size", "3", "--attn-dim-head", "4", "--attn-heads", "2", "--perceptual-loss-weight", "0",
         "--discr-dim", "1", "--discr-max-dim", "4", "--discr-linear-attn-dim-head", "2", "--discr-linear-attn-heads", "1"]
EMA = dict(update_after_step=0, update_every=1)


def make_clips(folder, count=12):
    folder.mkdir(parents=True)
    rng = numpy.random.default_rng(0)
    for i in range(count):
        frames = [Image.fromarray(rng.integers(0, 256, (9, 10, 3), dtype=numpy.uint8)) for _ in range(FRAMES)]
        frames[0].save(folder / f"{i}.gif", save_all=True, append_images=frames[1:])
    return folder


def trainer_in_python(clips, folder, steps):
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer = VideoTokenizerTrainer(build(CONFIG), dataset_folder=str(clips), dataset_type="videos", batch_size=2, num_train_steps=steps,
                                        num_frames=FRAMES, learning_rate=RATE, warmup_steps=WARMUP, valid_frac=0.25, ema_kwargs=EMA,
                                        validate_every_step=100, checkpoint_every_step=100,
                                        checkpoints_folder=str(folder / "checkpoints"), results_folder=str(folder / "results"))
    dataset = trainer.dataset.dataset  # its transform does not convert GIFs to tensors
    dataset.gif_to_tensor.keywords["transform"] = transforms.Compose([dataset.transform, transforms.ToTensor()])
    return trainer


def train_in_python(clips, folder):
    trainer = trainer_in_python(clips, folder, STEPS)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    trainer.save(str(folder / "trainer.pt"))
    return trainer


def train_here(bin, clips, folder, steps, *more, rate=RATE):
    subprocess.run([bin / "train_video_tokenizer", clips, "--results-folder", folder / "results", "--checkpoints-folder", folder / "checkpoints",
                    "--num-train-steps", str(steps), "--num-frames", str(FRAMES), "--batch-size", "2", "--valid-frac", "0.25",
                    "--learning-rate", str(rate), "--warmup-steps", str(WARMUP), "--ema-update-after-step", "0", "--ema-update-every", "1",
                    "--checkpoint-every-step", "1", "--quiet", *FLAGS, *more], check=True, stdout=subprocess.DEVNULL)
    return folder / "checkpoints" / f"checkpoint.{steps - 1}.pt"


def reconstruct(model, video):
    model.eval()
    with torch.no_grad():
        return model(video)


def to_python(check, bin, clips, folder):
    """The Python trainer loads our checkpoint with its own load() and continues with the right learning rate."""
    path = train_here(bin, clips, folder, STEPS)
    trainer = trainer_in_python(clips, folder / "python", STEPS + 2)
    trainer.load(str(path))
    saved = torch.load(path, weights_only=True)
    check("step", abs(trainer.step - STEPS))
    for name, module in (("model", trainer.model), ("ema_model", trainer.ema_model)):
        state = module.state_dict()
        check(f"our {name} in Python", sum(not torch.equal(state[k], saved[name][k]) for k in state) + (set(state) != set(saved[name])), 0)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    rates = [group["lr"] for group in trainer.optimizer.param_groups]
    check("the learning rate that Python goes on with", max(abs(rate - RATE) for rate in rates), 1e-9)
    check("all weights are finite after that", sum(not p.isfinite().all() for p in trainer.model.state_dict().values()), 0)


def from_python(check, bin, clips, folder):
    """Uses Python's checkpoint as --weights: only the weights are loaded, and training starts with them."""
    train_in_python(clips, folder)
    path = train_here(bin, clips, folder / "here", 1, "--weights", folder / "trainer.pt", rate=0)
    theirs, ours = (torch.load(p, weights_only=True)["model"] for p in (folder / "trainer.pt", path))
    check("Python's model here", sum(not torch.equal(theirs[k], ours[k]) for k in theirs) + (list(theirs) != list(ours)), 0)


def write_fixture(folder):
    """Writes the files of a tiny trainer and its reconstruction of a clip."""
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        trainer = train_in_python(make_clips(temporary / "clips"), temporary)
        (folder / "video.trainer.pt").write_bytes((temporary / "trainer.pt").read_bytes())
    video = torch.rand(1, 3, FRAMES, 8, 8)
    torch.save({"config": json.dumps(CONFIG), "video": video, "raw": reconstruct(trainer.model, video),
                "average": reconstruct(trainer.ema_model.ema_model, video)}, folder / "video.reconstructions.pt")


def compare(check, bin, folder):
    clips = make_clips(folder / "clips")
    to_python(check, bin, clips, folder / "ours")
    from_python(check, bin, clips, folder / "theirs")


if __name__ == "__main__":
    both_ways.main(__doc__, write_fixture, compare)
