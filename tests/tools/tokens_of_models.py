"""preprocess tokens with trained models: the tokens equal those of the Python packages for the same weights and frames
(fixtures/, made by tests/parity/python/make_token_fixtures.py); killed, sharded and resumed caches are the same byte for byte;
untrained models and files that are no model get one clear line."""
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import numpy
import pyarrow
import torch
from PIL import Image

from faults import INSPECT, PREPROCESS, check_same, files_of, ledger, must, preprocess, temporary

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def one_line(process, code, *words):
    must(process, code)
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    check(len(lines) == 1 and all(word in lines[0] for word in words), f"expected one line with {words}, got:\n{process.stderr}")
    print(f"  {code}  {lines[0]}")


def write_media(folder, frames):
    """Without loss: what the package was given is what the decoders give."""
    folder.mkdir()
    for i, one in enumerate(frames.numpy()):
        if one.ndim == 3:
            Image.fromarray(one).save(folder / f"p{i:03d}.png")
            continue
        height, width = one.shape[1:3]
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "8", "-i", "-",
                        "-c:v", "ffv1", "-pix_fmt", "bgr0", folder / f"c{i:03d}.mkv"], input=one.tobytes(), check=True)
    return folder


def toml(config):
    return "".join(f"{key.replace('_', '-')} = {json.dumps(value) if key != 'layers' or isinstance(value, int) else json.dumps(json.dumps(value))}\n"
                   for key, value in config.items())


def options_of(out):
    info = json.loads(subprocess.run([INSPECT, str(out), "--json"], check=True, capture_output=True, text=True).stdout)
    return info["options"]


def tokens_are_pythons(folder, name, dtype):
    fixture = torch.load(FIXTURES / f"tokens_{name}.pt", weights_only=True)
    config = json.loads(fixture["config"])
    media = write_media(folder / "media", fixture["frames"])
    weights = {"checkpoint.pt": fixture["checkpoint"], "ours.pt": dict(fixture["checkpoint"], config=fixture["config"]),
               "bare.pt": fixture["checkpoint"]["model"], "ema.pt": fixture["checkpoint"]["ema_model"],
               "package.pt": dict(model_state_dict=fixture["checkpoint"]["model"], version="0.4.2", config=b"\x80\x04.")}
    for file, value in weights.items():
        torch.save(value, folder / file)
    (folder / "model.toml").write_text(toml(config) + 'learning-rate = 1e-4\nresults-folder = "results"\n')
    (folder / "model.json").write_text(fixture["config"])
    flags = ["tokens", media, "--size", fixture["frames"].shape[2], "--frames", 5]
    hashes = {}

    def made(file, which, *more, out="x.npy"):
        out = folder / f"{file}{len(hashes)}.{out}"
        must(preprocess(*flags, "--model", folder / file, "--out", out, *more))
        options = options_of(out)
        hashes.setdefault(which, options["weights"])
        check(hashes[which] == options["weights"], f"{file}: the hash of the same weights is another")
        if out.suffix == ".npy":
            found = numpy.load(out, mmap_mode="r")
            check(isinstance(found, numpy.memmap) and found.dtype == dtype, f"{file}: {found.dtype}")
        else:
            column = pyarrow.ipc.open_file(pyarrow.memory_map(str(out))).read_all()["tokens"].to_pylist()
            found = numpy.array(column).reshape(fixture["codes"][which].shape)
        check(numpy.array_equal(found, fixture["codes"][which].numpy()), f"{name}, {file}: the tokens of {which} are not Python's")

    made("ours.pt", "ema")
    made("checkpoint.pt", "model", "--weights", "model", "--model-config", folder / "model.toml")
    check(hashes["ema"] != hashes["model"], "the hash does not know the weights")
    if name == "video_lfq":
        made("ours.pt", "ema", "--jobs", 1, out="x.arrow")
        made("ema.pt", "ema", "--model-config", folder / "model.toml")
        made("package.pt", "model", "--model-config", folder / "model.json")
        bare = [*flags, "--model", folder / "bare.pt"]
        one_line(preprocess(*bare, "--out", folder / "y.npy"), 2, "bare.pt", "--model-config")
        (folder / "config.toml").write_text(toml(config))  # as a trainer leaves it beside its weights
        made("bare.pt", "model")
        one_line(preprocess(*bare, "--weights", "ema", "--out", folder / "y.npy"), 2, "no moving average")
    print(f"{name}: the tokens are Python's, as {dtype}")
    return flags


def kill_when_begun(command, out):
    """SIGKILL once a shard is on the disk; the process may have ended by then."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    parts = pathlib.Path(str(out) + ".parts")
    while process.poll() is None and not [p for p in parts.glob("shard-*") if p.suffix != ".tmp"]:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def same_however_made(folder, flags, clips):
    media = flags[1]
    found = sorted(media.iterdir())
    for i in range(clips - len(found)):
        (media / f"d{i:04d}{found[0].suffix}").write_bytes(found[i % len(found)].read_bytes())
    (media / "d0007b.mkv").write_bytes(b"no clip")
    flags = [*flags, "--model", folder / "ours.pt", "--shard-rows", "7"]
    (folder / "whole").mkdir()
    must(preprocess(*flags, "--out", folder / "whole" / "x.npy"))
    expected = files_of(folder / "whole" / "x.npy")
    rows = numpy.load(folder / "whole" / "x.npy", mmap_mode="r")
    check(len(rows) == clips and len(ledger(folder / "whole" / "x.npy")) == 1, "not every clip is there")
    (folder / "killed").mkdir()
    out = folder / "killed" / "x.npy"
    killed = kill_when_begun([PREPROCESS, *flags, "--out", out], out)
    must(preprocess(*flags, "--out", out))
    check_same(expected, out, "killed and resumed")
    (folder / "shared").mkdir()
    out = folder / "shared" / "x.npy"
    for part in (1, 0):
        must(preprocess(*flags, "--out", out, "--shard", f"{part}/2", "--jobs", 1 + part))
    check_same(expected, out, "made in two shards with other threads")
    print(f"{clips} clips: {'killed and ' if killed else ''}resumed, and made in two shards: the same files")
    one_line(preprocess(*flags, "--out", folder / "whole" / "x.npy", "--weights", "model"), 2, "weights")


def wrong_files(folder, flags):
    media, out = flags[1], folder / "wrong.npy"
    whole = (folder / "ours.pt").read_bytes()
    for i, damaged in enumerate((whole[:len(whole) // 2], bytes([*whole[:90000], whole[90000] ^ 1, *whole[90001:]]))):
        (folder / f"damaged{i}.pt").write_bytes(damaged)
        one_line(preprocess(*flags, "--model", folder / f"damaged{i}.pt", "--out", out), 2, f"damaged{i}.pt")
    torch.save({"transformer.weight": torch.zeros(3)}, folder / "other.pt")
    one_line(preprocess(*flags, "--model", folder / "other.pt", "--out", out), 2, "other.pt", "holds no video tokenizer, VQGAN-VAE")
    saved = torch.load(folder / "ours.pt", weights_only=True)
    config = json.loads(saved["config"])
    torch.save(dict(saved, config=json.dumps(dict(config, init_dim=6))), folder / "unlike.pt")
    one_line(preprocess(*flags, "--model", folder / "unlike.pt", "--out", out), 2, "unlike.pt", "conv_in.conv.weight")
    ours = [*flags[:2], "--model", folder / "ours.pt", "--out", out]
    one_line(preprocess(*ours, "--frames", 6), 2, "--frames 5 or 7")
    one_line(preprocess(*ours, "--frames", 5, "--size", 20), 2, "--size 16")
    must(preprocess(*ours, "--frames", 7))  # filled up
    check(numpy.load(out).shape[1] == 4, "5 frames as 7")
    must(preprocess(*ours, "--frames", 7, "--short", "error", "--fresh"), 1)
    reasons = [line["reason"] for line in ledger(out)]
    check(reasons and sum("5" in reason and "7" in reason for reason in reasons) >= 6, f"of clips that are too short: {reasons[:2]}")
    fixture = torch.load(FIXTURES / "tokens_vqgan.pt", weights_only=True)
    torch.save(dict(fixture["checkpoint"], config=fixture["config"]), folder / "vqgan.pt")
    one_line(preprocess("tokens", media, "--model", folder / "vqgan.pt", "--out", out), 2, "vqgan.pt", "takes pictures")


def untrained_models(folder):
    """Tokens of a model that was never trained mean nothing: one line and exit code 2."""
    fixture = torch.load(FIXTURES / "tokens_nuwa_vae.pt", weights_only=True)
    media = write_media(folder / "media", fixture["frames"])
    trained = dict(fixture["checkpoint"], config=fixture["config"])
    empty = dict(trained["model"], **{"vq._codebook.initted": torch.zeros(1)})
    average = dict(trained["ema_model"], **{"ema_model.vq._codebook.initted": torch.zeros(1)})
    files = {"codebook.pt": (dict(trained, model=empty), "model", "codebook was never initialised"),
             "average.pt": (dict(trained, ema_model=average), "ema", "codebook was never initialised"),
             "step0.pt": (dict(trained, step=0, loader={"seed": 42}), "model", "checkpoint of step 0")}
    for name, (state, weights, words) in files.items():
        torch.save(state, folder / name)
        one_line(preprocess("tokens", media, "--model", folder / name, "--weights", weights, "--size", fixture["frames"].shape[2],
                            "--frames", 5, "--out", folder / "x.npy"), 2, name, words, "train")
        check(not (folder / "x.npy").exists(), f"{name}: a cache was written")


def main():
    with temporary() as folder:
        untrained_models(pathlib.Path(folder))
    clips = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name, dtype in (("vqgan", "uint8"), ("nuwa_vae", "uint8"), ("video_fsq", "uint8"), ("video_lfq", "uint16")):
        with temporary() as folder:
            folder = pathlib.Path(folder)
            flags = tokens_are_pythons(folder, name, dtype)
            if name == "video_lfq":
                same_however_made(folder, flags, clips)
                wrong_files(folder, flags)


main()
