"""Makes the fixtures of the mesh transformer from the Python packages in requirements.txt.

usage: python make_mesh_transformer_fixtures.py FOLDER [NAME...]
       python make_mesh_transformer_fixtures.py FOLDER --random COUNT SEED     random configurations

The model is the package's own. Only its text model, which the package would download, is replaced:
texts are given as embeddings. float32, one thread.
"""
import json
import os
import pathlib
import random
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")
import torch
from torch.nn import functional as F
from classifier_free_guidance_pytorch import classifier_free_guidance_pytorch as guidance
from meshgpt_pytorch import MeshAutoencoder, MeshTransformer
from meshgpt_pytorch import meshgpt_pytorch as module
from pytorch_custom_utils import get_adam_optimizer

torch.set_num_threads(1)
module.tqdm = lambda steps: steps  # no progress bars


class TextModel:
    """Replaces T5."""
    dim_latent = 8

    def __init__(self, name, text_embed_pad_value=0.0):
        pass


guidance.CONDITION_CONFIG["t5"] = TextModel


def build(config):
    plain = dict(config)
    sizes = dict(codebook_size=plain.pop("codebook_size"), num_quantizers=plain.pop("num_quantizers"), quads=plain.get("quads", False))
    TextModel.dim_latent = plain.pop("dim_text", 8)
    # The codes are given, so the autoencoder is not used.
    small = dict(encoder_dims_through_depth=(8, 8), decoder_dims_through_depth=(8,), dim_codebook=8, dim_coor_embed=4, dim_area_embed=4, dim_normal_embed=4, dim_angle_embed=4,
                 num_discrete_coors=8, num_discrete_area=8, num_discrete_normals=8, num_discrete_angle=8, use_residual_lfq=False, rvq_kwargs=dict(kmeans_init=False))
    return MeshTransformer(MeshAutoencoder(**small, **sizes), **plain)


class Recorder:
    """Records the results of Tensor.uniform_ inside the `with` block: they decide which texts are dropped."""

    def __enter__(self):
        self.draws, self.original = {}, torch.Tensor.uniform_

        def uniform_(tensor, *args):
            drawn = self.original(tensor, *args)
            self.draws[f"rand/{len(self.draws)}"] = drawn.detach().clone()
            return drawn

        torch.Tensor.uniform_ = uniform_
        return self

    def __exit__(self, *_):
        torch.Tensor.uniform_ = self.original


def some_codes(config, faces):
    """A batch of meshes with these numbers of faces, padded with -1."""
    each = config["num_quantizers"] * (4 if config.get("quads") else 3)
    rows = [torch.randint(0, config["codebook_size"], (n * each,)) for n in faces]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)


def some_texts(config, rows):
    """Random text embeddings. Some end in rows of zeros, which are padding."""
    texts = torch.randn(rows, 4, config["dim_text"])
    for i in range(rows):
        texts[i, 4 - i % 3:] = 0
    return texts


def fixed_loss(model, codes, text):
    """The loss without a bug of the package: it counts a label 0 after every mesh that is not the longest of its batch."""
    labels = F.pad(codes, (0, 1), value=-1)
    ends = (codes != -1).sum(-1)
    labels[torch.arange(len(codes)), ends] = model.eos_token_id
    logits = model.forward_on_codes(codes.clone(), return_loss=False, append_eos=False, **text)
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1)


def forward(model, config, faces):
    out = {"model": "mesh_transformer", "config": json.dumps(config)}
    named = [(k, p) for k, p in model.named_parameters() if p.requires_grad]
    for name, p in named:
        out[f"param/{name}"] = p.detach().clone()
    for name, b in model.named_buffers():
        if name.endswith("inv_freq"):
            out[f"buffer/{name}"] = b.detach().clone()
    codes = out["input/codes"] = some_codes(config, faces)
    text = {}
    if config.get("condition_on_text"):
        text = dict(text_embeds=some_texts(config, len(faces)))
        out["input/text_embeds"] = text["text_embeds"]
    model.train()
    with Recorder() as recorder:
        for tag, make in (("codes", lambda: model.forward_on_codes(codes.clone(), **text)), ("mended", lambda: fixed_loss(model, codes, text))):
            for _, p in named:
                p.grad = None
            loss = make()
            loss.backward()
            out[f"loss/{tag}"] = loss.detach().clone()
            out.update({f"grad/{tag}/{k}": p.grad.detach().clone() for k, p in named if p.grad is not None})
    out.update(recorder.draws)
    model.eval()
    with torch.no_grad():
        out["loss/eval"] = model.forward_on_codes(codes.clone(), **text)
        some = codes[:, :config["num_quantizers"] * 5].clone().clamp(min=0)
        out["output/logits"] = model.forward_on_codes(some, return_loss=False, append_eos=False, **text)
    return out


def generated(model, config, out):
    """Greedy generation with and without the KV cache: without a prompt, from the start of a mesh, and guided by the text."""
    each = config["num_quantizers"] * (4 if config.get("quads") else 3)
    text = {"text_embeds": out["input/text_embeds"]} if "input/text_embeds" in out else {}
    ways = {}
    extra = config.get("attn_kwargs", {})
    if not extra.get("rotary_pos_emb") and not extra.get("alibi_pos_bias"):  # with these the package fails without a prompt
        ways["nothing"] = dict(batch_size=len(out["input/codes"])) if not text else {}
    ways["prompt"] = dict(prompt=out["input/codes"][:, :each].clamp(min=0))
    ways["within"] = dict(prompt=out["input/codes"][:, :each + 2].clamp(min=0))
    if text:
        ways["guided"] = dict(ways["prompt"], cond_scale=2.5)
    for name, options in ways.items():
        for cached in (True, False):
            codes = model.generate(temperature=0.0, return_codes=True, cache_kv=cached, **options, **text).flatten(1)
            # If two logits are almost equal, rounding in the cache may select another code: not comparable.
            if not cached and codes.shape == out[f"output/made.{name}"].shape and not torch.equal(codes, out[f"output/made.{name}"]):
                raise RuntimeError("the package gives other codes with its KV cache than without")
            out[f"output/made.{name}"] = codes
        if "prompt" in options:
            out[f"input/made.{name}"] = options["prompt"]


def steps(model, config, faces, count=5, lr=1e-3, max_norm=0.5):
    """Optimizer steps as in the package's trainer, without warm-up."""
    out = {"step/config": json.dumps({"steps": count, "lr": lr, "max_norm": max_norm})}
    model.train()
    optimizer = get_adam_optimizer(model.parameters(), lr=lr, wd=0.0, filter_by_requires_grad=True)
    with Recorder() as recorder:
        for i in range(count):
            codes = out[f"step/input/{i}"] = some_codes(config, faces)
            text = {}
            if config.get("condition_on_text"):
                text = dict(text_embeds=some_texts(config, len(faces)))
                out[f"step/text/{i}"] = text["text_embeds"]
            loss = model.forward_on_codes(codes.clone(), **text)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                torch.nn.utils.clip_grad_norm_(group["params"], max_norm)
            optimizer.step()
            out[f"step/loss/{i}"] = loss.detach().clone()
    out.update({f"step/{k}": v for k, v in recorder.draws.items()})
    out.update({f"step/after/{k}": p.detach().clone() for k, p in model.named_parameters() if p.requires_grad})
    return out


TINY = dict(codebook_size=12, num_quantizers=2, dim=8, max_seq_len=24, attn_depth=1, attn_dim_head=4, attn_heads=2, fine_attn_depth=1, coarse_pre_gateloop_depth=1,
            fine_pre_gateloop_depth=1)
# name: configuration, numbers of faces of the meshes in a batch
CASES = {
    "plain": (dict(TINY, flash_attn=False), [3, 1, 2]),
    "text": (dict(TINY, condition_on_text=True, dim_text=6, attn_kwargs=dict(alibi_pos_bias=True, attn_num_mem_kv=1, ff_swish=True), cross_attn_num_mem_kv=2), [2, 3]),
}


def random_case(rng):
    """Random sizes and options that the package can run."""
    some = lambda *values: rng.choice(values)
    quantizers, quads = some(1, 2, 2, 2, 3), rng.random() < 0.2
    each = quantizers * (4 if quads else 3)
    heads, flash = some(2, 4), rng.random() < 0.6
    kwargs = dict(ff_glu=some(True, True, False), attn_num_mem_kv=some(0, 1, 4), ff_mult=some(4, 2))
    position = some("none", "none", "rotary", "alibi", "relative")
    if position == "rotary":
        kwargs["rotary_pos_emb"] = True
    elif position == "alibi":
        kwargs["alibi_pos_bias"] = True
        if rng.random() < 0.5:
            kwargs["alibi_num_heads"] = heads - 1
    elif position == "relative" and not flash:
        kwargs.update(rel_pos_bias=True, rel_pos_num_buckets=8, rel_pos_max_distance=16)
    kwargs.update({some("ff_swish", "ff_relu_squared", "ff_post_act_ln", "ff_no_bias"): True} if rng.random() < 0.5 else {})
    if kwargs["ff_glu"] and rng.random() < 0.3:
        kwargs["ff_glu_mult_bias"] = True
    more = some(dict(attn_qk_norm=True), dict(attn_qk_norm=True, attn_qk_norm_dim_scale=True), dict(attn_one_kv_head=True), dict(attn_kv_heads=heads // 2), dict(attn_head_scale=True),
                dict(attn_gate_values=True), dict(use_rmsnorm=True), dict(use_scalenorm=True), dict(use_simple_rmsnorm=True), dict(sandwich_norm=True), dict(scale_residual=True), {})
    kwargs.update(more)
    dim_head = some(32, 48) if position == "rotary" else some(4, 8)
    config = dict(codebook_size=some(8, 16, 50), num_quantizers=quantizers, quads=quads, dim=some(8, 16, 24), max_seq_len=each * rng.randint(4, 6), flash_attn=flash,
                  attn_depth=rng.randint(1, 3), attn_dim_head=dim_head, attn_heads=heads, fine_attn_depth=rng.randint(1, 2), coarse_pre_gateloop_depth=rng.randint(0, 2),
                  fine_pre_gateloop_depth=rng.randint(0, 2), gateloop_use_heinsen=some(True, False))
    if rng.random() < 0.85:
        config["attn_kwargs"] = kwargs
    if rng.random() < 0.4:
        config.update(condition_on_text=True, dim_text=some(5, 8), cross_attn_num_mem_kv=some(1, 4), text_condition_cond_drop_prob=some(0.25, 0.5))
    return config, [rng.randint(1, 4) for _ in range(rng.randint(2, 4))]


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    cases, seed = CASES, 0
    if names[0] == "--random":
        seed = int(names[2])
        rng = random.Random(seed)
        cases = {f"random_{seed}_{i}": random_case(rng) for i in range(int(names[1]))}
        names = list(cases)
    for name in names:
        config, faces = cases[name]
        torch.manual_seed(seed)
        model = build(config)
        with torch.no_grad():
            model.to_logits.bias[-1] += 0.5  # so that some meshes end
            model.token_embed.weight *= 2  # so that the output depends on the codes, not only on positions
            model.abs_pos_emb.weight *= 0.3
            model.to_logits.weight *= 3
        state = {k: v.clone() for k, v in model.state_dict().items()}
        fixture = forward(model, config, faces)
        generated(model, config, fixture)
        model.load_state_dict(state)
        fixture.update(steps(model, config, faces))
        path = folder / f"mesh_transformer_{name}.pt"
        torch.save(fixture, path)
        print(path, path.stat().st_size, {k: v.tolist() for k, v in fixture.items() if k.startswith("output/made")} if seed == 0 else json.dumps(config), flush=True)


if __name__ == "__main__":
    main()
