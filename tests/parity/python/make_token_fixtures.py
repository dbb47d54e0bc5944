"""Makes the fixtures of tests/tools/tokens_of_models.py from the Python packages in requirements.txt.

usage: python make_token_fixtures.py FOLDER [NAME...]

Each holds a checkpoint of the Python trainer, the model's arguments, frames, and the tokens of the
frames, from the model and from its EMA.
"""
import json
import pathlib
import sys

import torch
from ema_pytorch import EMA
from magvit2_pytorch import VideoTokenizer
from muse_maskgit_pytorch import VQGanVAE
from nuwa_pytorch import VQGanVAE as NuwaVAE

SMALL = dict(image_size=16, init_dim=4, attn_dim_head=4, attn_heads=2, linear_attn_dim_head=2, linear_attn_heads=2, input_conv_kernel_size=[3, 3, 3],
             perceptual_loss_weight=0.0, use_gan=False)
LAYERS = ["residual", ["compress_space", 8], "linear_attend_space", ["compress_time", 12], "gateloop_time", "attend_space", "attend_time"]
CASES = {
    "video_lfq": (VideoTokenizer, dict(SMALL, layers=LAYERS, codebook_size=1024), (6, 5, 16, 16, 3)),
    "video_fsq": (VideoTokenizer, dict(SMALL, layers=LAYERS, use_fsq=True, fsq_levels=[8, 5, 5], num_codebooks=2), (6, 5, 16, 16, 3)),
    "vqgan": (VQGanVAE, dict(dim=8, layers=2, codebook_size=256, encdec_resnet_groups=4, use_vgg_and_gan=False), (6, 32, 32, 3)),
    # With three layers the package's own conversion computes a wrong size of the feature maps.
    "nuwa_vae": (NuwaVAE, dict(dim=4, image_size=24, num_layers=3, layer_mults=[1, 2, 2], vq_codebook_size=64, vq_codebook_dim=6, resnet_groups=2, attn_dim_head=4, attn_heads=2,
                               use_vgg_and_gan=False, vq_kmeans_init=False), (4, 5, 24, 24, 3)),
}


def build(kind, config):
    if kind in (VQGanVAE, NuwaVAE):
        model = kind(**config)
        if kind is NuwaVAE:  # codes in all directions
            model.vq._codebook.embed.data.copy_(torch.nn.functional.normalize(torch.randn_like(model.vq._codebook.embed), dim=-1))
        return model
    plain = dict(config, layers=tuple(tuple(l) if isinstance(l, list) else l for l in config["layers"]))
    plain["input_conv_kernel_size"] = tuple(plain["input_conv_kernel_size"])
    return kind(discr_kwargs=dict(dim=1, image_size=16, max_dim=4, linear_attn_heads=1, linear_attn_dim_head=2), **plain)


@torch.no_grad()
def tokens(kind, model, frames):
    model.eval()
    if kind is NuwaVAE:
        return model.get_video_indices(frames.movedim(-1, 2).contiguous().float() / 255)
    pixels = frames.movedim(-1, 1).contiguous().float() / 255
    return model.encode(pixels)[1] if kind is VQGanVAE else model.tokenize(pixels)


def main():
    for name in sys.argv[2:] or CASES:
        kind, config, shape = CASES[name]
        torch.manual_seed(11)
        model = build(kind, config)
        for p in torch.nn.Module.parameters(model):  # as if trained, so that the features differ
            p.data += (1.0 if kind is NuwaVAE else 0.3) * torch.randn_like(p)
        ema = EMA(model, update_after_step=0, update_every=1, beta=0.9, include_online_model=False)
        ema.update()
        for p in torch.nn.Module.parameters(model):
            p.data += 0.05 * torch.randn_like(p)
        low = torch.rand(shape[0], 3, *(2 if n < 9 else n // 4 for n in shape[1:-1]))
        smooth = torch.nn.functional.interpolate(low, size=shape[1:-1], mode="trilinear" if len(shape) == 5 else "bicubic")
        frames = (smooth + 0.05 * torch.randn_like(smooth)).clamp(0, 1).mul(255).round().to(torch.uint8).movedim(1, -1).contiguous()
        both = dict(model=tokens(kind, model, frames), ema=tokens(kind, ema.ema_model, frames))
        assert not torch.equal(both["model"], both["ema"])
        path = pathlib.Path(sys.argv[1]) / f"tokens_{name}.pt"
        torch.save(dict(checkpoint=dict(model=model.state_dict(), ema_model=ema.state_dict(), step=3), config=json.dumps(config), frames=frames, codes=both), path)
        print(path, path.stat().st_size, both["ema"].shape, both["ema"].unique().numel())


main()
