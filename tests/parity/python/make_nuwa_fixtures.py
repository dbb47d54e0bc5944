"""Makes the fixtures of NUWA and of its VAE from the Python packages in requirements.txt.

usage: python make_nuwa_fixtures.py FOLDER [NAME...]              the committed fixtures
       python make_nuwa_fixtures.py FOLDER --random 12 --seed 7   random configurations

Like make_fixtures.py: the models are the package's own; float32, one thread.
"""
import argparse
import json
import pathlib
import random

import torch
from torch import nn
from make_fixtures import TinyVGG
import nuwa_pytorch.nuwa_pytorch as package
from nuwa_pytorch import NUWA, VQGanVAE
from nuwa_pytorch.optimizer import separate_weight_decayable_params


class Uniforms:
    """Records the results of Tensor.uniform_ inside the `with` block."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __enter__(self):
        self.draws, self.original = {}, torch.Tensor.uniform_

        def uniform_(tensor, *args, **kwargs):
            self.original(tensor, *args, **kwargs)
            self.draws[f"{self.prefix}{len(self.draws)}_uniform"] = tensor.clone()
            return tensor

        torch.Tensor.uniform_ = uniform_
        return self

    def __exit__(self, *_):
        torch.Tensor.uniform_ = self.original


def tuples(config):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}  # JSON has no tuples


def optimizer_of(parameters, lr, wd):
    """Like the package's get_optimizer, but with the parameters in a fixed order."""
    if wd == 0:
        return torch.optim.Adam(parameters, lr=lr)
    decayed, others = separate_weight_decayable_params(set(parameters))
    groups = [{"params": [p for p in parameters if p in decayed]}, {"params": [p for p in parameters if p in others], "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=wd)


def gradients(model, tag):
    return {f"grad/{tag}/{k}": p.grad.detach().clone() for k, p in nn.Module.named_parameters(model) if p.grad is not None}


def initialise(vae):
    """Enlarges weights that the package initialises close to zero, and gives every code another vector."""
    for name, p in nn.Module.named_parameters(vae):
        if name.endswith(".scale"):
            p.data.uniform_(0, 2)
    vae.vq._codebook.embed.data.normal_()
    vae.vq._codebook.embed.data.copy_(nn.functional.normalize(vae.vq._codebook.embed, dim=-1))
    vae.vq._codebook.embed_avg.data.copy_(vae.vq._codebook.embed)
    return vae


def build_vae(config):
    return initialise(VQGanVAE(vgg=TinyVGG() if config.get("use_vgg_and_gan", True) else None, **tuples(config)))


def vae_fixture(config, batch, weight_decay):
    model = build_vae(config)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    gan = config.get("use_vgg_and_gan", True)
    out = {"model": "nuwa_vqgan", "config": json.dumps(config)}
    out.update({f"param/{k}": p.detach().clone() for k, p in nn.Module.named_parameters(model)})
    out.update({f"buffer/{k}": b.detach().clone() for k, b in model.named_buffers() if not k.endswith("rel_pos")})
    channels, side = config.get("channels", 3), config["image_size"]
    img = out["input/img"] = torch.rand(batch, channels, side, side)
    model.train()
    loss, recon = model(img, return_loss=True, return_recons=True)
    out["loss/gen"], out["output/gen.recon"] = loss.detach().squeeze().clone(), recon.detach().clone()
    out["loss/gen.recon"] = model.recon_loss_fn(recon, img).detach()
    if gan:
        three = lambda t: t.repeat(1, 3, 1, 1) if t.shape[1] == 1 else t
        out["loss/gen.perceptual"] = nn.functional.mse_loss(model.vgg(three(img)), model.vgg(three(recon))).detach()
        out["loss/gen.gen"] = model.gen_loss(model.discr(recon)).detach()
    loss.sum().backward()
    out.update(gradients(model, "gen"))
    for tag, penalty in [("discr", False), ("discr_penalty", True)] if gan else []:
        model.zero_grad(set_to_none=True)
        loss = model(img.clone(), return_discr_loss=True, apply_grad_penalty=penalty)
        out[f"loss/{tag}"] = loss.detach().clone()
        loss.backward()
        out.update(gradients(model, tag))
    out.update({f"buffer_after/{k}": b.detach().clone() for k, b in model.named_buffers() if "_codebook" in k and not torch.equal(b, state[k])})
    model.load_state_dict(state)
    video = out["input/video"] = torch.rand(batch, 2, channels, side, side)
    codes = out["output/codes"] = model.get_video_indices(video).clone()
    if model.fmap_size == side // 2**model.num_layers and model.vq.codebook.shape[-1] == config["dim"] * (config.get("layer_mults") or [2 ** (model.num_layers - 1)])[-1]:
        out["output/again"] = model.codebook_indices_to_video(codes.flatten(1)).clone()
    out.update(vae_steps(model, state, (batch, channels, side, side), gan, weight_decay))
    return out


def vae_steps(model, state, shape, gan, weight_decay, count=5, lr=3e-4):
    model.load_state_dict(state)
    model.train()
    model.zero_grad(set_to_none=True)
    out = {"step/config": json.dumps({"steps": count, "lr": lr, "gradient_penalty": False, "weight_decay": weight_decay})}
    discr = list(model.discr.parameters()) if gan else []
    others = [p for p in model.parameters() if p.requires_grad and not any(p is d for d in discr)]
    optim = optimizer_of(others, lr, weight_decay)
    discr_optim = optimizer_of(discr, lr, weight_decay) if gan else None
    for i in range(count):
        first, second = torch.rand(*shape), torch.rand(*shape)
        out[f"step/input/{2 * i}"] = first.clone()
        loss = model(first, return_loss=True)
        loss.sum().backward()
        optim.step()
        model.zero_grad(set_to_none=True)
        out[f"step/loss/{i}.gen"] = loss.detach().squeeze()
        if gan:
            out[f"step/input/{2 * i + 1}"] = second.clone()
            loss = model(second, return_discr_loss=True)
            loss.backward()
            discr_optim.step()
            model.zero_grad(set_to_none=True)
            out[f"step/loss/{i}.discr"] = loss.detach()
    out.update({f"step/after/{k}": p.detach().clone() for k, p in nn.Module.named_parameters(model) if not k.startswith("vgg.")})
    return out


def sampled(model, out, prefix, name, **kwargs):
    """Records the codes that the package samples, because generate() returns only the video."""
    chosen, original = [], package.gumbel_sample

    def recording(*args, **kwargs):
        chosen.append(original(*args, **kwargs))
        return chosen[-1]

    package.gumbel_sample, package.tqdm = recording, lambda x: x
    with Uniforms(prefix) as uniforms:
        try:
            video = model.generate(**kwargs)
        except RuntimeError:  # the package cannot decode codes that need a projection, but the codes are recorded
            video = None
    package.gumbel_sample = original
    out[f"output/{name}"] = torch.stack(chosen, dim=1)
    return uniforms.draws, video


def nuwa_fixture(config, batch, words, frames, cond_scale, small=False):
    model = NUWA(vae=initialise(VQGanVAE(**tuples(config["vae"]))), **tuples({k: v for k, v in config.items() if k != "vae"}))
    state = {k: v.clone() for k, v in model.state_dict().items()}
    out = {"model": "nuwa", "config": json.dumps(config), "state_names": json.dumps(list(state))}
    out["generate"] = json.dumps({"num_frames": frames, "cond_scale": cond_scale})
    out.update({f"param/{k}": p.detach().clone() for k, p in model.named_parameters()})
    out.update({f"buffer/{k}": b.detach().clone() for k, b in model.named_buffers() if "_codebook" in k or k.endswith("inv_freq")})
    text = torch.randint(1, config["text_num_tokens"], (batch, words))
    for i in range(1, batch):
        text[i, words - min(i, words - 1):] = 0
    side, channels = config["vae"]["image_size"], config["vae"].get("channels", 3)
    new_video = lambda: torch.rand(batch, config["max_video_frames"], channels, side, side)
    video = out["input/video"] = new_video()
    out["input/text"] = text.clone()
    model.train()
    with Uniforms("rand/") as uniforms:
        loss = model(text=text, video=video, return_loss=True)
    out.update(uniforms.draws)
    out["loss/video"] = loss.detach().clone()
    loss.backward()
    out.update(gradients(model, "video"))
    model.zero_grad(set_to_none=True)
    codes = out["output/codes"] = model.vae.get_video_indices(video).clone()
    loss = model(text=text, video=codes.flatten(1), return_loss=True, cond_dropout_prob=0.0)
    out["loss/codes"] = loss.detach().clone()
    loss.backward()
    if not small:
        out.update(gradients(model, "codes"))
    _, again = sampled(model, out, "greedy/", "greedy", text=text, filter_thres=1.0, cond_scale=cond_scale, num_frames=frames)
    if again is not None:
        out["output/greedy_video"] = again.clone()
    draws, _ = sampled(model, out, "lot/", "lot", text=text, filter_thres=0.5, temperature=0.7, cond_scale=cond_scale, num_frames=frames)
    out.update(draws)
    out.update(nuwa_steps(model, state, text, [new_video() for _ in range(5)]))
    return out


def nuwa_steps(model, state, text, videos, lr=3e-4, wd=0.01, max_grad_norm=0.5):
    model.load_state_dict(state)
    model.train()
    model.zero_grad(set_to_none=True)
    out = {"step/config": json.dumps({"steps": len(videos), "lr": lr, "weight_decay": wd, "max_grad_norm": max_grad_norm})}
    optim = optimizer_of(list(model.parameters()), lr, wd)
    with Uniforms("step/rand/") as uniforms:
        for i, video in enumerate(videos):
            out[f"step/input/{i}"] = video.clone()
            loss = model(text=text, video=video, return_loss=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
            optim.step()
            optim.zero_grad()
            out[f"step/loss/{i}"] = loss.detach().clone()
    out.update(uniforms.draws)
    out.update({f"step/after/{k}": p.detach().clone() for k, p in model.named_parameters() if not k.startswith("vae.")})
    return out


VAE = dict(dim=16, image_size=8, channels=1, num_layers=1, vq_codebook_size=12, vq_codebook_dim=8, attn_dim_head=4, attn_heads=2, use_vgg_and_gan=False, vq_kmeans_init=False)
SMALL = dict(VAE, dim=4, resnet_groups=2, num_resnet_blocks=0, vq_codebook_dim=4, use_attn=False)
NUWA_TINY = dict(dim=12, max_video_frames=2, text_num_tokens=9, text_max_seq_len=6, text_enc_depth=1, text_enc_dim_head=4, text_enc_heads=2, enc_reversible=True,
                 dec_depth=1, dec_dim_head=4, dec_heads=2)
# name: function that makes the fixture, and its arguments
CASES = {
    "nuwa_vqgan_tiny": (vae_fixture, dict(VAE, use_vgg_and_gan=True, num_resnet_blocks=0), 2, 0.0),
    "nuwa_vqgan_no_gan": (vae_fixture, dict(VAE, dim=4, resnet_groups=2, num_layers=2, image_size=16, vq_codebook_dim=8, l2_recon_loss=True), 2, 0.01),
    "nuwa_reversible": (nuwa_fixture, dict(NUWA_TINY, dec_reversible=True, vae=SMALL), 2, 5, 3, 2.0, True),
    "nuwa_plain": (nuwa_fixture, dict(NUWA_TINY, dec_depth=2, sparse_3dna_dilation=2, sparse_3dna_kernel_size=[1, 3, 3], text_rotary_pos_emb=False, sparse_3dna_rel_pos_bias=True, vae=SMALL), 1, 4, 2, 1.0, True),
}


def random_vae(rng, gan):
    layers = rng.choice([1, 2, 3])
    dim = rng.choice([16, 32]) if gan else rng.choice([8, 16, 32])
    config = dict(dim=dim, num_layers=layers, image_size=2**layers * (rng.choice([4, 5, 6]) if gan else rng.choice([2, 3, 4])), channels=rng.choice([1, 3]),
                  vq_codebook_size=rng.choice([16, 40]), vq_codebook_dim=rng.choice([8, 24, dim * 2 ** (layers - 1)]), attn_dim_head=rng.choice([4, 8]), attn_heads=rng.choice([1, 3]),
                  use_vgg_and_gan=gan, vq_kmeans_init=False, l2_recon_loss=rng.random() < 0.4, resnet_groups=rng.choice([8, 4]),
                  first_conv_kernel_size=rng.choice([5, 3]), vq_use_cosine_sim=rng.random() < 0.8, vq_commitment_weight=rng.choice([1.0, 0.25]), vq_decay=rng.choice([0.8, 0.95]))
    config["num_resnet_blocks"] = rng.choice([0, 1, 2, [rng.choice([0, 1]) for _ in range(layers)]]) if layers > 1 else rng.choice([0, 1, 2])
    config["use_attn"] = rng.choice([True, False, [rng.random() < 0.5 for _ in range(layers)]]) if layers > 1 else rng.choice([True, False])
    if rng.random() < 0.4:
        config["layer_mults"] = [rng.choice([1, 2]) for _ in range(layers)]
    return config


def random_nuwa(rng):
    # At least two heads: with one, talking heads only scale a value that a norm scales back, so their gradient is rounding error.
    frames = rng.choice([2, 3, 4])
    config = dict(dim=rng.choice([16, 24, 30]), max_video_frames=frames, text_num_tokens=rng.choice([20, 64]), text_max_seq_len=12, text_enc_depth=rng.choice([1, 2]),
                  text_enc_dim_head=rng.choice([4, 8, 40]), text_enc_heads=rng.choice([2, 3]), enc_reversible=True, text_rotary_pos_emb=rng.random() < 0.7, dec_depth=rng.choice([1, 2, 3]),
                  dec_dim_head=rng.choice([4, 8, 20]), dec_heads=rng.choice([2, 3, 4]), dec_reversible=rng.random() < 0.6, embed_gradient_frac=rng.choice([0.2, 1.0]),
                  shift_video_tokens=rng.random() < 0.7, sparse_3dna_kernel_size=rng.choice([3, 5, [3, 1, 5], [1, 3, 3]]), sparse_3dna_dilation=rng.choice([1, 3, [2, 1]]),
                  sparse_3dna_rel_pos_bias=rng.random() < 0.4, vae=random_vae(rng, False))
    if rng.random() < 0.4:
        config["sparse_3dna_query_num_frames_chunk"] = rng.choice([1, 2])
    if rng.random() < 0.3:
        config["ff_chunk_size"] = 5
    batch = 1 if config["sparse_3dna_rel_pos_bias"] else rng.choice([1, 2, 3])  # the package can add this bias only to a batch of one
    return nuwa_fixture, config, batch, rng.choice([4, 9, 12]), frames + rng.choice([-1, 0, 0, 1, 2]), rng.choice([1.0, 2.0, 3.5])


def make(path, seed, maker, *arguments):
    torch.manual_seed(seed)
    fixture = maker(*arguments)
    torch.save(fixture, path)
    print(path, path.stat().st_size, fixture["config"] if seed else "", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for i in range(args.random):
        seed = args.seed + i + 1
        make(args.folder / f"nuwa_random_{args.seed}_{i}.pt", seed, *random_nuwa(rng))
        make(args.folder / f"nuwa_vqgan_random_{args.seed}_{i}.pt", seed, vae_fixture, random_vae(rng, rng.random() < 0.8), rng.choice([1, 2, 3]), rng.choice([0.0, 0.01]))
    for name in args.names or ([] if args.random else list(CASES)):
        make(args.folder / f"{name}.pt", 0, *CASES[name])


if __name__ == "__main__":
    main()
