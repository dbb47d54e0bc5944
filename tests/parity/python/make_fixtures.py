"""Makes the fixtures of parity_check from the Python packages in requirements.txt.

usage: python make_fixtures.py FOLDER [NAME...]              the committed fixtures
       python make_fixtures.py FOLDER --random 20 --seed 7   random configurations, with optimizer steps

The models are the packages' own; this script builds them, runs them and saves their inputs and
outputs (format: fixture.h). float32, one thread.
"""
import argparse
import json
import os
import pathlib
import random
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")
import torch
from torch import nn
from muse_maskgit_pytorch import VQGanVAE
import muse_maskgit_pytorch.vqgan_vae as vqgan_module
from vector_quantize_pytorch import VectorQuantize

torch.set_num_threads(1)


class TinyVGG(nn.Module):
    """Replaces VGG16, whose weights are half a gigabyte."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 16))
        self.requires_grad_(False)

    def forward(self, x):
        return self.net(x)


def build(config):
    if config.get("lookup_free_quantization", True):
        return VQGanVAE(vgg=TinyVGG(), **config)
    # The package cannot build a VQGAN with a vector quantizer (a missing comma in its code), so the quantizer is replaced afterwards.
    vq = {k[3:]: v for k, v in config.items() if k.startswith("vq_")}
    rest = {k: v for k, v in config.items() if not k.startswith("vq_")}
    model = VQGanVAE(vgg=TinyVGG(), **{**rest, "lookup_free_quantization": True, "codebook_size": 16})
    model.quantizer = VectorQuantize(dim=model.enc_dec.encoded_dim, codebook_size=config["codebook_size"], accept_image_fmap=True, **vq)
    return model


class Recorder:
    """Records the results of torch.randn inside the `with` block."""

    def __init__(self, prefix="rand/"):
        self.prefix = prefix

    def __enter__(self):
        self.draws, self.original = {}, torch.randn

        def randn(*args, **kwargs):
            drawn = self.original(*args, **kwargs)
            self.draws[f"{self.prefix}{len(self.draws)}_randn"] = drawn.clone()
            return drawn

        torch.randn = randn
        return self

    def __exit__(self, *_):
        torch.randn = self.original


def tags(model, img, gan):
    loss, recon = model(img, return_loss=True, return_recons=True)
    parts = {"recon": model.recon_loss_fn(recon, img)}
    if gan:
        three = lambda t: t.repeat(1, 3, 1, 1) if t.shape[1] == 1 else t
        parts["perceptual"] = nn.functional.mse_loss(model.vgg(three(img)), model.vgg(three(recon)))
        parts["gen"] = model.gen_loss(model.discr(recon))
    yield "gen", loss, parts, {"recon": recon}
    _, ids, aux = model.encode(img)
    yield "quantizer_aux", aux.squeeze(), {}, {"ids": ids}
    if gan:
        yield "discr", model(img.clone(), return_discr_loss=True), {}, {}


def forward(model, config, shape, train):
    gan = config.get("use_vgg_and_gan", True)
    model.train(train)
    out = {"model": "vqgan", "config": json.dumps(config)}
    for name, p in model.named_parameters():
        out[f"param/{name}"] = p.detach().clone()
    before = {name: b.detach().clone() for name, b in model.named_buffers()}
    # Buffers that the lookup-free quantizer computes from its configuration are left out to save space.
    out.update({f"buffer/{n}": b for n, b in before.items() if not n.endswith((".codebook", ".zero"))})
    torch.manual_seed(1)
    img = torch.rand(*shape)
    out["input/img"] = img.clone()
    with Recorder() as recorder:
        for tag, loss, parts, outputs in tags(model, img, gan):
            model.zero_grad(set_to_none=True)
            if loss.requires_grad:
                loss.backward()
            out[f"loss/{tag}"] = loss.detach().clone()
            for name, value in parts.items():
                out[f"loss/{tag}.{name}"] = value.detach().clone()
            for name, value in outputs.items():
                out[f"output/{tag}.{name}"] = value.detach().clone().contiguous()
            for name, p in model.named_parameters():
                if p.grad is not None:
                    out[f"grad/{tag}/{name}"] = p.grad.detach().clone()
    out.update(recorder.draws)
    for name, b in model.named_buffers():
        if not torch.equal(b, before[name]):
            out[f"buffer_after/{name}"] = b.detach().clone()
    return out


def steps(model, shape, penalty, count=5, lr=3e-4):
    """Generator and discriminator steps with Adam, as in the package's trainer."""
    out = {"step/config": json.dumps({"steps": count, "lr": lr, "gradient_penalty": penalty})}
    model.train()
    discr = list(model.discr.parameters())
    others = [p for p in model.parameters() if p.requires_grad and not any(p is d for d in discr)]
    optim, discr_optim = torch.optim.Adam(others, lr=lr), torch.optim.Adam(discr, lr=lr)
    original = vqgan_module.gradient_penalty
    if not penalty:  # the package always adds the gradient penalty
        vqgan_module.gradient_penalty = lambda *args, **kwargs: 0.0
    torch.manual_seed(2)
    recorder = Recorder("step/rand/").__enter__()
    for i in range(count):
        first, second = torch.rand(*shape), torch.rand(*shape)
        out[f"step/input/{2 * i}"], out[f"step/input/{2 * i + 1}"] = first.clone(), second.clone()
        loss = model(first, return_loss=True)
        loss.backward()
        optim.step()
        optim.zero_grad()
        discr_optim.zero_grad()
        discr_loss = model(second, return_discr_loss=True)
        discr_loss.backward()
        discr_optim.step()
        optim.zero_grad()
        out[f"step/loss/{i}.gen"], out[f"step/loss/{i}.discr"] = loss.detach().squeeze(), discr_loss.detach()
    recorder.__exit__()
    out.update(recorder.draws)
    vqgan_module.gradient_penalty = original
    for name, p in model.named_parameters():
        if not name.startswith("_vgg."):
            out[f"step/after/{name}"] = p.detach().clone()
    return out


TINY = dict(dim=16, layers=1, codebook_size=16, discr_layers=1)
# name: configuration, shape of the input, training mode, optimizer steps (None: no steps; True or False: with or without gradient penalty)
CASES = {
    "tiny": (TINY, (2, 3, 16, 16), True, True),
    "no_penalty_l2_bce": ({**TINY, "l2_recon_loss": True, "use_hinge_loss": False, "encdec_num_resnet_blocks": 0}, (2, 3, 16, 16), True, False),
    "no_gan": ({**TINY, "layers": 2, "use_vgg_and_gan": False}, (2, 3, 16, 16), True, None),
    "eval": (TINY, (3, 3, 16, 16), False, None),
    "grey": ({**TINY, "channels": 1, "discr_layers": 2}, (2, 1, 24, 16), True, None),
    "codebooks": ({**TINY, "lfq_kwargs": {"num_codebooks": 2, "soft_clamp_input_value": 2.0, "use_code_agnostic_commit_loss": True, "frac_per_sample_entropy": 0.5,
                                          "entropy_loss_weight": 0.2, "projection_has_bias": False}}, (2, 3, 16, 16), True, None),
    "layers": ({**TINY, "layers": 2, "encdec_layer_mults": [2, 1], "encdec_num_resnet_blocks": 0, "encdec_first_conv_kernel_size": 3,
                "lfq_kwargs": {"codebook_scale": 0.5, "cosine_sim_project_in": True, "diversity_gamma": 2.0}}, (1, 3, 16, 32), True, None),
    "vector_quantizer": ({**TINY, "lookup_free_quantization": False, "vq_codebook_dim": 8, "vq_decay": 0.8, "vq_commitment_weight": 1.0,
                          "vq_kmeans_init": False, "vq_use_cosine_sim": True}, (2, 3, 16, 16), True, None),
    "euclidean": ({**TINY, "lookup_free_quantization": False, "encdec_num_resnet_blocks": 0, "vq_codebook_dim": 8, "vq_decay": 0.9, "vq_commitment_weight": 0.25,
                   "vq_kmeans_init": False, "vq_use_cosine_sim": False}, (2, 3, 16, 16), True, None),
}


def random_lfq(rng):
    options = {"diversity_gamma": [0.5, 2.5], "entropy_loss_weight": [0.0, 0.02, 1.0], "commitment_loss_weight": [0.0, 1.0], "num_codebooks": [1, 2, 3],
               "keep_num_codebooks_dim": [True], "codebook_scale": [0.5, 2.0], "frac_per_sample_entropy": [0.25, 0.7], "use_code_agnostic_commit_loss": [True],
               "projection_has_bias": [False], "soft_clamp_input_value": [2.0, 5.0], "cosine_sim_project_in": [True], "cosine_sim_project_in_scale": [1.0, 3.0],
               "channel_first": [True]}
    return {name: rng.choice(values) for name, values in options.items() if rng.random() < 0.35}


def random_vq(rng):
    options = {"codebook_dim": [8, 12, 16], "decay": [0.8, 0.99], "kmeans_init": [False], "commitment_weight": [0.25, 1.0], "use_cosine_sim": [True, True, False],
               "eps": [1e-3]}
    return {"lookup_free_quantization": False, **{"vq_" + name: rng.choice(values) for name, values in options.items() if rng.random() < 0.7}}


def random_case(rng):
    layers, discr_layers = rng.choice([1, 2, 3]), rng.choice([0, 1, 2, 3])
    config = dict(dim=rng.choice([16, 32, 48]), layers=layers, discr_layers=discr_layers, codebook_size=2 ** rng.choice([1, 4, 6, 10]),
                  channels=rng.choice([1, 3, 3]), l2_recon_loss=rng.random() < 0.5, use_hinge_loss=rng.random() < 0.5,
                  encdec_resnet_groups=rng.choice([16, 8, 4, 1]), encdec_first_conv_kernel_size=rng.choice([5, 3, 7, 1]), encdec_num_resnet_blocks=rng.choice([0, 1, 2]))
    if rng.random() < 0.4:
        config["encdec_layer_mults"] = [rng.choice([1, 2, 3]) for _ in range(layers)]
    if rng.random() < 0.25:
        config.update(random_vq(rng), codebook_size=rng.choice([16, 50]))
    elif rng.random() < 0.6:
        config["lfq_kwargs"] = random_lfq(rng)
    divisor = 2**layers
    smallest = -(-max(divisor, 4 * 2**discr_layers) // divisor)
    sides = [divisor * rng.randint(smallest, smallest + 4) for _ in range(2)]
    return config, (rng.choice([1, 2, 3, 5]), config["channels"], *sides), True, rng.random() < 0.5


def make(path, case, seed):
    config, shape, train, penalty = case
    torch.manual_seed(seed)
    model = build(config)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    fixture = forward(model, config, shape, train)
    if penalty is not None:
        model.load_state_dict(state)
        fixture.update(steps(model, shape, penalty))
    torch.save(fixture, path)
    print(path, path.stat().st_size, json.dumps(config), shape, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for i in range(args.random):
        make(args.folder / f"vqgan_random_{args.seed}_{i}.pt", random_case(rng), args.seed + i)
    for name in args.names or ([] if args.random else list(CASES)):
        make(args.folder / f"vqgan_{name}.pt", CASES[name], 0)


if __name__ == "__main__":
    main()
