"""The NUWA benchmark of train.py: our trainer and the Python one on the same GIFs with captions, ours also on precomputed codes; and
the speed of both at computing the codes, with the same weights. Captions are CLIP tokens on both sides."""
import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The proportions are those of the package's example, where VAE and transformer have the same dim.
SPEC = {"steps": 3, "warm": 2, "batch": 4, "gifs": 96, "side": 128,
        "model": {"dim": 128, "max_video_frames": 5, "enc_reversible": True, "dec_reversible": True,
                  "vae": {"dim": 128, "image_size": 128, "channels": 3, "num_layers": 4, "use_vgg_and_gan": False, "vq_kmeans_init": False}}}
THEIRS, OURS = "nuwa-pytorch, from GIFs", {"millrace, from GIFs": [], "millrace, from codes": ["codes"]}
# The package converts one clip at a time. Batches of clips are also measured, and the better rate counts.
TOKENS = {**SPEC, "tokens": True}
THEIRS_TOKENS = "nuwa-pytorch, clips/s"
OURS_TOKENS = {"nuwa-pytorch, 8 at once, clips/s": ["python"], "preprocess tokens, clips/s": []}


def gifs(bench, spec):
    folder = bench.work / f"digits{spec['side']}_{spec['gifs']}"
    if not folder.exists():
        subprocess.run([bench.root / "build/release/bin/sample_digits", folder, "--count", str(spec["gifs"]), "--size", str(spec["side"]), "--frames",
                        str(spec["model"]["max_video_frames"])], check=True, stdout=subprocess.DEVNULL)
    return folder


def python(bench, spec, threads, *more):
    return [bench.python, HERE / "trainer_nuwa.py", "--folder", gifs(bench, spec), "--steps", spec["steps"], "--warm", spec["warm"], "--batch", spec["batch"],
            "--accum", 1, "--threads", threads, "--model", json.dumps(spec["model"]), *more]


def vae(bench, spec):
    path = bench.work / "nuwa_vae.pt"
    if not path.exists():
        subprocess.run([str(part) for part in python(bench, spec, 1, "--save", path)], check=True)
    return path


def vocabulary(bench):
    return next(bench.work.glob("trainers/lib/python3*/site-packages/nuwa_pytorch/data/bpe_simple_vocab_16e6.txt"))


def theirs(bench, spec, at_once=1):
    codes = ["--codes", bench.work / "nuwa_codes.memmap", "--at-once", at_once] if "tokens" in spec else []
    result, memory = bench.measured(python(bench, spec, bench.threads, "--vae", vae(bench, spec), *codes))
    return result.get("items_per_s", result.get("steps_per_s")), memory, result


def convert(bench, spec, out):
    """The time of the whole process, from its start."""
    result, memory = bench.measured([bench.root / "build/release/bin/preprocess", "tokens", gifs(bench, spec), "--model", vae(bench, spec), "--frames",
                                     spec["model"]["max_video_frames"], "--captions", "--out", out, "--jobs", bench.threads, "--json", "--fresh"])
    return result["items_per_s"], memory, {**result, "data_wait": 0}


def ours(bench, spec, flags):
    if "tokens" in spec:
        if flags:
            return theirs(bench, spec, at_once=8)
        with tempfile.TemporaryDirectory() as folder:
            return convert(bench, spec, pathlib.Path(folder) / "codes.arrow")
    source = gifs(bench, spec)
    if flags == ["codes"]:
        source = bench.work / "nuwa_codes.arrow"
        if not source.exists():
            convert(bench, spec, source)
    model = [part for key, value in spec["model"].items() if key != "vae" for part in ("--" + key.replace("_", "-"), str(value).lower())]
    with tempfile.TemporaryDirectory() as results:
        result, memory = bench.measured(
            [bench.root / "build/release/bin/train_nuwa", source, "--vae", vae(bench, spec), "--results-folder", results, "--num-train-steps",
             spec["steps"] + spec["warm"], "--batch-size", spec["batch"], "--grad-accum-every", 1, "--threads", bench.threads, "--bpe", vocabulary(bench),
             "--save-results-every", 0, "--save-model-every", 0, "--checkpoint-every", 10**9, "--json", "--quiet", *model])
    return result["steps_per_second"], memory, result
