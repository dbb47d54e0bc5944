"""Makes the fixtures of MuLaN from the Python packages in requirements.txt.

usage: python make_mulan_fixtures.py FOLDER [NAME...]
       python make_mulan_fixtures.py FOLDER --random COUNT SEED     random configurations

Like make_fixtures.py: the model is the package's own; float32, one thread.
"""
import importlib.machinery
import json
import os
import pathlib
import random
import sys
import types
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")
import torch
from lion_pytorch import Lion
from torch import nn

torch.set_num_threads(1)


def stand_in(name, **attributes):
    """Replaces classes of audiolm-pytorch that the package imports. MuLaN does not use them, and they cannot be imported with a new Python."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(attributes)
    sys.modules[name] = module


stand_in("audiolm_pytorch", AudioLM=nn.Module)
stand_in("audiolm_pytorch.utils", AudioConditionerBase=nn.Module)
from musiclm_pytorch import AudioSpectrogramTransformer, MuLaN, TextTransformer


def build(config):
    rest = {k: v for k, v in config.items() if k not in ("audio", "text", "spec_augment")}
    audio = dict(config["audio"])
    if isinstance(audio.get("patch_size"), list):
        audio["patch_size"] = tuple(audio["patch_size"])
    audio = AudioSpectrogramTransformer(**audio)
    if not config.get("spec_augment", True):
        audio.aug = nn.Identity()
    return MuLaN(audio_transformer=audio, text_transformer=TextTransformer(**config["text"]), **rest)


class Recorder:
    """Records the results of torch.rand and torch.randn inside the `with` block."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __enter__(self):
        self.draws, self.originals = {}, {name: getattr(torch, name) for name in ("rand", "randn")}

        def recorded(name):
            def draw(*args, **kwargs):
                drawn = self.originals[name](*args, **kwargs)
                self.draws[f"{self.prefix}{len(self.draws)}_{name}"] = drawn.clone()
                return drawn
            return draw

        for name in self.originals:
            setattr(torch, name, recorded(name))
        return self

    def __exit__(self, *_):
        for name, original in self.originals.items():
            setattr(torch, name, original)


def inputs(config, shape):
    """Sounds (or spectrograms) and texts; all texts except the first end in padding."""
    sounds = torch.randn(*shape).mul(0.25).clamp(-1, 1)
    length = min(config["text"]["max_seq_len"], 7)
    low, high = (98, 124) if config["text"]["num_tokens"] == 257 else (1, config["text"]["num_tokens"])  # 257: bytes; these are letters
    texts = torch.randint(low, high, (shape[0], length))
    for row in range(1, shape[0]):
        texts[row, length - row % length:] = config["text"].get("pad_id", 0)
    return sounds, texts


def shake(model):
    """Changes the package's initial weights, because gains of one and biases of zero hide errors."""
    for name, p in model.named_parameters():
        if name.endswith(("gamma", "_scale")):
            p.data.add_(torch.rand_like(p) - 0.5)


def forward(model, config, shape, train):
    model.train(train)
    out = {"model": "mulan", "config": json.dumps(config), "input/train": torch.tensor(int(train))}
    out.update({f"param/{n}": p.detach().clone() for n, p in model.named_parameters()})
    state = model.state_dict()
    out.update({f"buffer/{n}": state[n].clone() for n, _ in model.named_buffers() if n in state})
    sounds, texts = inputs(config, shape)
    out["input/wavs"], out["input/texts"] = sounds, texts
    with Recorder("rand/") as recorder:
        loss = model(sounds, texts=texts)
        loss.backward()
        with torch.no_grad():
            audio, text = model(sounds, texts=texts, return_latents=True)
    out["loss/cl"] = loss.detach().clone()
    out["output/audio_latents"], out["output/text_latents"] = audio, text
    out.update({f"grad/cl/{n}": p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    if not config["audio"].get("accept_spec", False):
        out["output/spectrogram"] = model.audio.spec(sounds[:1]).clone()
    out.update(recorder.draws)
    return out


def steps(model, config, shape, lion, count=5, lr=3e-4, max_grad_norm=0.5):
    """Optimizer steps as in the package's trainer."""
    out = {"step/config": json.dumps({"steps": count, "lr": lr, "lion": lion, "max_grad_norm": max_grad_norm})}
    model.train()
    optim = (Lion if lion else torch.optim.Adam)(model.parameters(), lr=lr, betas=(0.9, 0.99))
    batches = [inputs(config, shape) for _ in range(count)]
    with Recorder("step/rand/") as recorder:
        for i, (sounds, texts) in enumerate(batches):
            out[f"step/input/{i}.wavs"], out[f"step/input/{i}.texts"] = sounds, texts
            loss = model(sounds, texts=texts)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
            optim.step()
            optim.zero_grad()
            out[f"step/loss/{i}"] = loss.detach().clone()
    out.update(recorder.draws)
    out.update({f"step/after/{n}": p.detach().clone() for n, p in model.named_parameters()})
    return out


AUDIO = dict(dim=8, depth=2, ff_mult=1, heads=2, dim_head=4, patch_size=8, spec_n_fft=32, spec_win_length=24, spec_aug_freq_mask=6, spec_aug_time_mask=10)
TEXT = dict(dim=4, depth=2, ff_mult=1, heads=2, dim_head=4, num_tokens=24, max_seq_len=8)
# name: configuration, shape of the input, training mode, optimizer steps ("adam", "lion" or None)
CASES = {
    "decoupled": (dict(audio=AUDIO, text=TEXT, dim_latent=6), (4, 300), True, "adam"),
    "sigmoid_layers": (dict(audio=dict(AUDIO, depth=2, patch_dropout_prob=0.0, spec_power=1, spec_hop_length=10), text=dict(TEXT, depth=2, ff_mult=2), dim_latent=6,
                            sigmoid_contrastive_loss=True, hierarchical_contrastive_loss=True), (3, 200), True, "lion"),
    "eval": (dict(audio=dict(AUDIO, depth=2, patch_size=[4, 8], spec_center=False), text=dict(TEXT, depth=2, num_tokens=257, pad_id=3), dim_latent=5, decoupled_contrastive_learning=False), (3, 260), False, None),
}


def random_case(rng):
    """Random sizes and options that the package can run."""
    some = lambda *values: rng.choice(values)
    depth = rng.randint(2, 5)
    audio = dict(dim=some(8, 16, 32), depth=depth, heads=some(1, 2, 3), dim_head=some(4, 8, 16), patch_size=some(4, 8, 16, [4, 8], [16, 6]), spec_n_fft=some(64, 128, 200, 256),
                 spec_power=some(1, 2, 2, 3), ff_mult=some(2, 4), spec_aug_freq_mask=some(0, 8, 80), spec_aug_time_mask=some(0, 8, 80), patch_dropout_prob=some(0.0, 0.25, 0.5),
                 accept_spec=rng.random() < 0.25, accept_spec_time_first=some(True, False), spec_pad=some(0, 0, 20), spec_center=some(True, True, False),
                 spec_pad_mode=some("reflect", "constant"), spec_win_length=some(24, 64, 50), spec_aug_stretch_factor=some(0.8, 1.0))
    if rng.random() < 0.5:
        audio["spec_hop_length"] = some(8, 20, 40)
    text = dict(dim=some(8, 16, 24), depth=rng.randint(2, 4), heads=some(1, 2, 4), dim_head=some(4, 8), num_tokens=some(16, 300), max_seq_len=some(6, 40), ff_mult=some(2, 4))
    config = dict(audio=audio, text=text, dim_latent=some(4, 16), decoupled_contrastive_learning=some(True, False), sigmoid_contrastive_loss=rng.random() < 0.35,
                  spec_augment=rng.random() < 0.7)
    if rng.random() < 0.5:
        config["hierarchical_contrastive_loss"] = True
        if rng.random() < 0.5:
            config["hierarchical_contrastive_loss_layers"] = rng.randint(1, min(depth, text["depth"]) - 1)
    batch = rng.randint(2, 6)
    shape = (batch, rng.randint(900, 2500))
    if audio["accept_spec"]:
        shape = (batch, 70, 33) if audio["accept_spec_time_first"] else (batch, 33, 70)
    train = rng.random() < 0.8
    return config, shape, train, some("adam", "adam", "lion") if train else None


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    cases, seed = CASES, 0
    if names[0] == "--random":
        seed = int(names[2])
        rng = random.Random(seed)
        cases = {f"random_{seed}_{i}": random_case(rng) for i in range(int(names[1]))}
        names = list(cases)
    for name in names:
        config, shape, train, moves = cases[name]
        torch.manual_seed(seed)
        model = build(config)
        shake(model)
        state = {k: v.clone() for k, v in model.state_dict().items()}
        fixture = forward(model, config, shape, train)
        if moves:
            model = build(config)
            model.load_state_dict(state)
            fixture.update(steps(model, config, shape, moves == "lion"))
        path = folder / f"mulan_{name}.pt"
        torch.save(fixture, path)
        print(path, path.stat().st_size, json.dumps(config) if seed else "", flush=True)


if __name__ == "__main__":
    main()
