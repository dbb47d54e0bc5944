"""Makes the fixtures of the video tokenizer from the Python packages in requirements.txt.

usage: python make_video_fixtures.py FOLDER [NAME...]
       python make_video_fixtures.py FOLDER --random COUNT SEED     random configurations

Like make_fixtures.py: the model is the package's own; float32, one thread.
"""
import json
import pathlib
import random
import sys

import torch
from torch.nn import functional as F
from make_fixtures import Recorder, TinyVGG
from magvit2_pytorch import VideoTokenizer
from magvit2_pytorch.magvit2_pytorch import Discriminator
from magvit2_pytorch.optimizer import get_optimizer


class ScaledDiscriminator(Discriminator):
    """Discriminates the frames of a video, downscaled by `scale`. The package accepts multi-scale discriminators but contains none."""

    def __init__(self, *, scale, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale

    def forward(self, video):
        frames = video.transpose(1, 2).flatten(0, 1)
        return super().forward(F.avg_pool2d(frames, self.scale) if self.scale > 1 else frames)


def build(config):
    plain = {k: v for k, v in config.items() if k != "multiscale_discrs"}
    plain["layers"] = tuple(tuple(l) if isinstance(l, list) else l for l in plain["layers"])
    for name in ("input_conv_kernel_size", "output_conv_kernel_size", "residual_conv_kernel_size"):
        if isinstance(plain.get(name), list):
            plain[name] = tuple(plain[name])
    scaled = tuple(ScaledDiscriminator(**kwargs) for kwargs in config.get("multiscale_discrs", []))
    vgg = TinyVGG() if config.get("perceptual_loss_weight", 0.1) > 0 and config.get("channels", 3) in (1, 3, 4) else None
    return VideoTokenizer(vgg=vgg, multiscale_discrs=scaled, **plain)


def open_gates(model):
    """Enlarges the residual branches, which the package initialises close to zero, so that errors in them show."""
    for name, p in torch.nn.Module.named_parameters(model):
        if name.endswith(".4.net.2.bias"):
            p.data.uniform_(-1, 1)
        elif name.endswith((".4.net.2.weight", "to_gamma.weight")):
            p.data.uniform_(-0.3, 0.3)


def tags(model, video, cond):
    total, b = model(video, cond=cond, return_loss=True)
    parts = dict(recon=b.recon_loss, quantizer_aux=b.lfq_aux_loss, perceptual=b.perceptual_loss, gen=b.adversarial_gen_loss,
                 adaptive_weight=b.adaptive_adversarial_weight)
    if b.quantizer_loss_breakdown is not None:
        q = b.quantizer_loss_breakdown
        parts.update(per_sample_entropy=q.per_sample_entropy, batch_entropy=q.batch_entropy, commitment=q.commitment)
    if model.has_multiscale_discrs:
        parts.update({f"multiscale.{i}": v for i, v in enumerate(b.multiscale_gen_losses)})
        parts.update({f"multiscale_weight.{i}": v for i, v in enumerate(b.multiscale_gen_adaptive_weights)})
    yield "gen", total, parts, {}
    if model.has_gan:
        total, b = model(video, cond=cond, return_discr_loss=True, apply_gradient_penalty=True)
        parts = dict(discr=b.discr_loss, gradient_penalty=b.gradient_penalty)
        parts.update({f"multiscale.{i}": v for i, v in enumerate(b.multiscale_discr_losses)})
        yield "discr", total, parts, {}
    codes, recon = model(video, cond=cond, return_codes=True, return_recon=True)
    yield "recon", (recon ** 2).mean(), {}, dict(codes=codes, recon=recon)


def forward(model, config, shape, train):
    model.train(train)
    out = {"model": "video_tokenizer", "config": json.dumps(config)}
    named = list(torch.nn.Module.named_parameters(model))
    for name, p in named:
        out[f"param/{name}"] = p.detach().clone()
    for name, b in model.named_buffers():
        # Buffers that the quantizers compute from their configuration are left out to save space.
        if name.startswith("discr.") or name.startswith("multiscale_discrs.") or name == "quantizers.mask":
            out[f"buffer/{name}"] = b.detach().clone()
    video = out["input/video"] = torch.rand(*shape)
    cond = None
    if model.has_cond:
        cond = out["input/cond"] = torch.randn(shape[0], config["dim_cond"])
    with Recorder() as recorder:
        for tag, loss, parts, outputs in tags(model, video, cond):
            for _, p in named:
                p.grad = None
            loss.backward()
            out[f"loss/{tag}"] = loss.detach().clone()
            out.update({f"loss/{tag}.{k}": torch.as_tensor(v).detach().clone() for k, v in parts.items()})
            out.update({f"output/{tag}.{k}": v.detach().clone().contiguous() for k, v in outputs.items()})
            out.update({f"grad/{tag}/{k}": p.grad.detach().clone() for k, p in named if p.grad is not None})
    model.eval()
    with torch.no_grad():  # as the package tokenizes, with the model in eval mode
        assert cond is not None or torch.equal(model.tokenize(video), out["output/recon.codes"])
    out.update(recorder.draws)
    return out


def steps(model, shape, count=5, lr=1e-4, penalty_every=2):
    """Alternating generator and discriminator steps with the optimizers of the package's trainer."""
    out = {"step/config": json.dumps({"steps": count, "lr": lr, "penalty_every": penalty_every})}
    model.train()
    named = list(torch.nn.Module.named_parameters(model))
    optim = get_optimizer(model.parameters(), lr=lr)
    others = [get_optimizer(model.discr_parameters(), lr=lr)] + [get_optimizer(d.parameters(), lr=lr) for d in model.multiscale_discrs]

    def step(loss, optimizers):
        loss.backward()
        for o in optimizers:
            o.step()
        for _, p in named:
            p.grad = None
        return loss.detach().clone()

    inputs = [torch.rand(*shape) for _ in range(2 * count)]
    for _, p in named:
        p.grad = None
    with Recorder() as recorder:
        for i in range(count):
            out[f"step/loss/{i}.gen"] = step(model(inputs[2 * i], return_loss=True)[0], [optim])
            if model.has_gan:
                loss = model(inputs[2 * i + 1], return_discr_loss=True, apply_gradient_penalty=i % penalty_every == 0)[0]
                out[f"step/loss/{i}.discr"] = step(loss, others)
    out.update({f"step/input/{i}": v for i, v in enumerate(inputs)})
    out.update({f"step/{k}": v for k, v in recorder.draws.items()})
    out.update({f"step/after/{k}": p.detach().clone() for k, p in named if not k.startswith("vgg.")})
    return out


TINY = dict(image_size=8, init_dim=4, max_dim=8, attn_dim_head=4, attn_heads=2, linear_attn_dim_head=2, linear_attn_heads=2, flash_attn=False,
            input_conv_kernel_size=[3, 3, 3])
DISCR = dict(dim=1, image_size=8, channels=3, max_dim=6, linear_attn_dim_head=2, linear_attn_heads=2)
# name: configuration, shape of the input, training mode, optimizer steps
CASES = {
    "lfq_video": (dict(TINY, codebook_size=64, discr_kwargs=DISCR, layers=["residual", "compress_space", "linear_attend_space", ["compress_time", 6], "gateloop_time",
                                                                           "attend_space", "attend_time"]), (2, 3, 3, 8, 8), True, True),
    "fsq_pictures": (dict(TINY, use_fsq=True, fsq_levels=[4, 3, 5], perceptual_loss_weight=0.0, layers=[["consecutive_residual", 2], ["compress_space", 6]],
                          discr_kwargs=dict(DISCR, antialiased_downsample=True)), (3, 3, 8, 8), True, True),
    "multiscale": (dict(TINY, codebook_size=8, num_codebooks=2, channels=1, dim_cond=3, layers=["compress_space", "cond_residual"], discr_kwargs=dict(DISCR, channels=1),
                        multiscale_discrs=[dict(DISCR, channels=1, scale=1), dict(DISCR, channels=1, scale=2, image_size=4)]), (2, 1, 2, 8, 8), True, None),
    "first_frame": (dict(TINY, codebook_size=16, use_gan=False, separate_first_frame_encoding=True, pad_mode="reflect", input_conv_kernel_size=[2, 3, 5],
                         residual_conv_kernel_size=[3, 1, 3], discr_kwargs=DISCR, layers=["compress_time", "residual"]), (2, 3, 5, 8, 8), False, None),
}


def random_case(rng):
    """Random layers, sizes and options that the package can run."""
    size = rng.choice([8, 12, 16, 24, 32])
    space = rng.randint(0, 2 if size % 4 == 0 else 1)
    time = rng.randint(0, 2)
    image = rng.random() < 0.3
    cond = rng.random() < 0.25
    some = lambda *values: rng.choice(values)
    layers = ["compress_space"] * space + [some("compress_time", ["compress_time", 5]) for _ in range(time)]
    layers += [some("residual", ["consecutive_residual", rng.randint(1, 3)], "attend_space", "linear_attend_space", "gateloop_time", *([] if cond else ["attend_time"]))
               for _ in range(rng.randint(1, 4))]
    rng.shuffle(layers)
    if cond:
        layers.append("cond_residual")
    channels = some(1, 3, 3, 4, 2)
    attn = dict(linear_attn_dim_head=some(2, 4, 8), linear_attn_heads=some(1, 2, 4))
    discr = dict(attn, dim=some(1, 2, 3), image_size=size, channels=channels, max_dim=some(8, 16, 512), ff_mult=some(2, 4), antialiased_downsample=some(True, False))
    config = dict(attn, image_size=size, layers=layers, channels=channels, init_dim=some(4, 6, 8), max_dim=some(8, 16, 24), attn_dim_head=some(4, 8), attn_heads=some(1, 3),
                  flash_attn=some(True, False), num_codebooks=some(1, 1, 2), discr_kwargs=discr, use_gan=rng.random() < 0.85, pad_mode=some("constant", "reflect", "replicate", "circular"),
                  input_conv_kernel_size=some([7, 7, 7], [3, 5, 3], [1, 3, 3]), output_conv_kernel_size=some([3, 3, 3], [5, 1, 3]), residual_conv_kernel_size=some(3, 1, 5),
                  perceptual_loss_weight=some(0.0, 0.1, 0.5), adversarial_loss_weight=some(1.0, 0.3), grad_penalty_loss_weight=some(10.0, 2.0),
                  quantizer_aux_loss_weight=some(1.0, 0.4), lfq_entropy_loss_weight=some(0.1, 0.02), lfq_commitment_loss_weight=some(1.0, 0.25), lfq_diversity_gamma=some(1.0, 2.5),
                  separate_first_frame_encoding=not image and rng.random() < 0.3)
    config.update(dict(use_fsq=True, fsq_levels=some([8, 5, 5], [3, 3], [7, 6, 2, 5])) if rng.random() < 0.4 else dict(codebook_size=some(4, 64, 512)))
    if cond:
        config.update(dim_cond=some(3, 5), dim_cond_expansion_factor=some(4.0, 1.5))
    if rng.random() < 0.4:
        config["multiscale_discrs"] = [dict(discr, scale=s, image_size=size // s) for s in (1, 2)[:rng.randint(1, 2)]]
    shape = (rng.randint(1, 3), channels) + (() if image else (1 + 2 ** time * rng.randint(1, 2),)) + (size, size)
    train = rng.random() < 0.8
    return config, shape, train, train and not cond


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
        open_gates(model)
        state = {k: v.clone() for k, v in model.state_dict().items()}
        fixture = forward(model, config, shape, train)
        if moves:
            model.load_state_dict(state)
            fixture.update(steps(model, shape))
        path = folder / f"video_tokenizer_{name}.pt"
        torch.save(fixture, path)
        print(path, path.stat().st_size, json.dumps(config) if seed else "", flush=True)


if __name__ == "__main__":
    main()
