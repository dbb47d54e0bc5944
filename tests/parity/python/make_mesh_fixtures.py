"""Makes the fixtures of the mesh autoencoder from the Python packages in requirements.txt.

usage: python make_mesh_fixtures.py FOLDER [NAME...]
       python make_mesh_fixtures.py FOLDER --random 20 --seed 7     random configurations

Like make_fixtures.py: the model is the package's own; float32, one thread.
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
from meshgpt_pytorch import MeshAutoencoder
from meshgpt_pytorch.data import derive_face_edges_from_faces
from pytorch_custom_utils import get_adam_optimizer
from torch.nn.utils.rnn import pad_sequence

torch.set_num_threads(1)


class Recorder:
    """Records the random numbers of torch and random inside the `with` block, in order."""

    def __init__(self, prefix="rand/"):
        self.prefix, self.draws = prefix, {}

    def wrap(self, function, what):
        def drawing(*args, **kwargs):
            drawn = function(*args, **kwargs)
            self.draws[f"{self.prefix}{len(self.draws)}_{what}"] = torch.as_tensor(drawn).detach().clone()
            return drawn

        return drawing

    def __enter__(self):
        self.saved = torch.randn, torch.randperm, torch.randint, torch.Tensor.uniform_, random.randrange
        torch.randn, torch.randperm, torch.randint = (self.wrap(f, f.__name__) for f in self.saved[:3])
        torch.Tensor.uniform_, random.randrange = self.wrap(self.saved[3], "uniform_"), self.wrap(self.saved[4], "randrange")
        return self

    def __exit__(self, *_):
        torch.randn, torch.randperm, torch.randint, torch.Tensor.uniform_, random.randrange = self.saved


def build(config):
    return MeshAutoencoder(**{k: tuple(v) if isinstance(v, list) else v for k, v in config.items()})  # JSON has no tuples


def one_mesh(vertices, faces, corners):
    """A strip, whose faces share edges, and some random faces."""
    strip = [torch.arange(i, i + corners) % vertices for i in range(min(faces // 2 + 1, vertices))]
    others = [torch.randperm(vertices)[:corners] for _ in range(faces - len(strip))]
    return torch.rand(vertices, 3) * 1.9 - 0.95, torch.stack(strip + others)


def batch(sizes, corners, with_edges):
    vertices, faces = zip(*(one_mesh(v, f, corners) for v, f in sizes))
    pad = lambda t: pad_sequence(list(t), batch_first=True, padding_value=-1)
    out = dict(vertices=pad(vertices), faces=pad(faces))
    if with_edges:
        out["face_edges"] = derive_face_edges_from_faces(out["faces"], pad_id=-1)
    return out


def own(state):
    """The tensors that the model does not compute from its configuration."""
    return {k: v.detach().clone() for k, v in state if not k.endswith((".codebook", ".zero", "attn_fn.rel_pos.scale"))}


def forward(model, config, meshes, train):
    model.train(train)
    out = {"model": "mesh_autoencoder", "config": json.dumps(config), "input/train": torch.tensor(int(train))}
    out.update({f"param/{k}": v for k, v in own(model.named_parameters()).items()})
    before = own(model.named_buffers())
    out.update({f"buffer/{k}": v for k, v in before.items()})
    out.update({f"input/{k}": v.clone() for k, v in meshes.items()})
    with Recorder() as recorder:
        total, (recon, commit) = model(**meshes, return_loss_breakdown=True)
    if total.requires_grad:
        total.backward()
    out.update({"loss/ae": total.detach(), "loss/ae.recon": recon.detach(), "loss/ae.commit": commit.detach().sum()})
    out.update({f"grad/ae/{k}": p.grad.detach().clone() for k, p in model.named_parameters() if p.grad is not None})
    out.update({f"buffer_after/{k}": v for k, v in own(model.named_buffers()).items() if not torch.equal(v, before[k])})
    out.update(recorder.draws)
    # With the codebook after training: before its first batch it would be initialised at random.
    codes = model.tokenize(**meshes)
    coordinates, bins, mask = model.decode_from_codes_to_faces(codes, return_discrete_codes=True)
    out.update({"output/codes": codes.clone(), "output/face_edges": derive_face_edges_from_faces(meshes["faces"], pad_id=-1), "output/mask": mask.clone(),
                "output/bins": bins.masked_fill(~mask[..., None, None], 0).clone(), "output/coordinates": coordinates.nan_to_num(7.0).clone()})
    out["output/recon_faces"] = model(**meshes, only_return_recon_faces=True).nan_to_num(7.0).clone()
    return out


def steps(model, inputs, weight_decay, max_grad_norm, lr=1e-4):
    """Optimizer steps as in the package's trainer, which clips each parameter group by its own norm; without warm-up."""
    out = {"step/config": json.dumps(dict(steps=len(inputs), lr=lr, weight_decay=weight_decay, max_grad_norm=max_grad_norm))}
    model.train()
    optimizer = get_adam_optimizer(model.parameters(), lr=lr, wd=weight_decay)
    with Recorder("step/rand/") as recorder:
        for i, meshes in enumerate(inputs):
            loss = model(**meshes)
            loss.backward()
            for group in optimizer.param_groups:
                if max_grad_norm:
                    torch.nn.utils.clip_grad_norm_(group["params"], max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            out[f"step/loss/{i}"] = loss.detach().clone()
            out.update({f"step/input/{i}.{k}": v.clone() for k, v in meshes.items()})
    out.update(recorder.draws)
    out.update({f"step/after/{k}": p.detach().clone() for k, p in model.named_parameters()})
    return out


TINY = dict(num_discrete_coors=16, dim_coor_embed=2, num_discrete_area=8, dim_area_embed=1, num_discrete_normals=8, dim_normal_embed=2, num_discrete_angle=8,
            dim_angle_embed=2, encoder_dims_through_depth=[8, 10], decoder_dims_through_depth=[8, 8, 6], dim_codebook=8, codebook_size=32)
HEADS = dict(local_attn_kwargs=dict(dim_head=4, heads=2), linear_attn_kwargs=dict(dim_head=2, heads=2), local_attn_window_size=4)
VQ = dict(TINY, use_residual_lfq=False, codebook_size=12, rvq_kwargs=dict(kmeans_init=True, threshold_ema_dead_code=2))
# name: configuration, meshes as (vertices, faces), training mode, face_edges given, (weight decay, clipping) of optimizer steps or None
CASES = {
    "lfq": (dict(TINY, **HEADS, dim_codebook=4, attn_encoder_depth=1), [(9, 13), (6, 7)], True, True, (0.0, None)),
    "lfq_three": (dict(TINY, num_quantizers=3, sageconv_kwargs=dict(normalize=False, project=False), rlfq_kwargs=dict(frac_per_sample_entropy=0.5, diversity_gamma=2.0),
                       bin_smooth_blur_sigma=1.0), [(7, 9), (7, 9), (5, 6)], True, False, (0.01, 0.5)),
    "vq": (VQ, [(7, 8), (7, 8)], True, True, (0.0, None)),
}


def random_case(rng):
    """Random sizes and options that the package can run."""
    some = lambda *values: rng.choice(values)
    maybe = lambda share, **kwargs: {k: v for k, v in kwargs.items() if rng.random() < share}
    quads = rng.random() < 0.15
    config = dict(num_discrete_coors=some(8, 32, 128), coor_continuous_range=some([-1.0, 1.0], [-2.0, 1.5]), dim_coor_embed=some(2, 5), num_discrete_area=some(4, 16),
                  dim_area_embed=some(1, 4), num_discrete_normals=some(4, 32), dim_normal_embed=some(2, 6), num_discrete_angle=some(4, 20), dim_angle_embed=some(1, 4),
                  encoder_dims_through_depth=[some(6, 12, 16) for _ in range(rng.randint(1, 4))], init_decoder_conv_kernel=some(1, 3, 7),
                  decoder_dims_through_depth=[some(6, 12, 20) for _ in range(rng.randint(1, 4))], dim_codebook=some(5, 8, 16), num_quantizers=rng.randint(1, 3),
                  codebook_size=some(16, 32, 256, 1024), commit_loss_weight=some(0.1, 1.0), bin_smooth_blur_sigma=some(0.4, 0.4, 1.3, -1.0), quads=quads,
                  flash_attn=some(True, False), attn_encoder_depth=some(0, 1, 2), attn_decoder_depth=0 if quads else some(0, 1, 2),
                  local_attn_window_size=some(3, 4, 8), use_linear_attn=rng.random() < 0.7)
    if rng.random() < 0.5:
        config["sageconv_kwargs"] = maybe(0.5, normalize=some(True, False), project=some(True, False), root_weight=some(True, False), bias=some(True, False), aggr=some("mean", "sum"))
    config["local_attn_kwargs"] = dict(dim_head=some(4, 8), heads=some(1, 2, 3), **maybe(0.3, qk_rmsnorm=True, qk_scale=4, use_xpos=True, xpos_scale_base=some(2, 5), exact_windowsize=False,
                                       gate_values_per_head=True, shared_qk=True, use_rotary_pos_emb=some(True, False), look_backward=some(0, 1, 2), look_forward=some(0, 1)))
    if not config["local_attn_kwargs"].get("use_rotary_pos_emb", True):
        config["local_attn_kwargs"].pop("use_xpos", None)
    config["linear_attn_kwargs"] = dict(dim_head=some(2, 4), heads=some(1, 2), **maybe(0.3, one_headed_kv=True, gate_value_heads=True))
    config["rq_kwargs"] = dict(quantize_dropout=True, quantize_dropout_cutoff_index=rng.randint(0, config["num_quantizers"] - 1)) if rng.random() < 0.6 else {}
    if rng.random() < 0.35:
        config.update(use_residual_lfq=False, rvq_stochastic_sample_codes=some(True, False), codebook_size=some(6, 20, 60),
                      rvq_kwargs=maybe(0.5, kmeans_init=True, kmeans_iters=3, threshold_ema_dead_code=some(1, 2), decay=0.9, eps=1e-4, use_cosine_sim=some(True, False), codebook_dim=some(4, 6)))
    elif rng.random() < 0.6:
        config["rlfq_kwargs"] = maybe(0.5, entropy_loss_weight=some(0.0, 0.3), diversity_gamma=some(0.5, 2.5), frac_per_sample_entropy=some(0.3, 0.8), use_code_agnostic_commit_loss=True,
                                      soft_clamp_input_value=some(2.0, 5.0))
    # Dead codes are replaced by random features, in the package even by those of padding faces. Meshes of equal size have no padding.
    same = not config.get("use_residual_lfq", True)
    sizes = [(rng.randint(5, 14), rng.randint(4, 24)) for _ in range(rng.randint(1, 4))]
    return config, [sizes[0]] * len(sizes) if same else sizes, rng.random() < 0.85, rng.random() < 0.5, (some(0.0, 0.02), some(None, 0.3))


def make(path, case, seed):
    config, sizes, train, with_edges, moves = case
    torch.manual_seed(seed)
    random.seed(seed)
    model = build(config)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    corners = 4 if config.get("quads") else 3
    fixture = forward(model, config, batch(sizes, corners, with_edges), train)
    if moves and train:
        model.load_state_dict(state)
        for p in model.parameters():
            p.grad = None
        fixture.update(steps(model, [batch(sizes, corners, with_edges) for _ in range(5)], *moves))
    torch.save(fixture, path)
    print(path, path.stat().st_size, json.dumps(config), sizes, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for i in range(args.random):
        make(args.folder / f"mesh_autoencoder_random_{args.seed}_{i}.pt", random_case(rng), args.seed + i)
    for name in args.names or ([] if args.random else list(CASES)):
        make(args.folder / f"mesh_autoencoder_{name}.pt", CASES[name], 0)


if __name__ == "__main__":
    main()
