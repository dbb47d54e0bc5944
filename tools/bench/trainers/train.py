"""Trains the same model on the same files with our trainer and with the Python trainer, alternately, each run in a
new process. Prints a table: steps per second, time by phase, peak memory.

usage: train.py train --root REPOSITORY --work FOLDER --out FOLDER [--rounds 3]
                      [--only tiny small video mulan mesh_autoencoder mesh_transformer nuwa nuwa_tokens]
                      [--pictures FOLDER] [--clips FOLDER] [--sounds FOLDER] [--meshes FOLDER]      meshes: OBJ files
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import nuwa
import run

THREADS, SIZE, BATCH, WARM = 2, 128, 4, 5
MODELS = {
    "tiny": {"steps": 30, "model": {"dim": 16, "layers": 2, "codebook_size": 256, "discr_layers": 2}},
    "small": {"steps": 20, "model": {"dim": 32, "layers": 3, "codebook_size": 4096, "discr_layers": 3}},
    # Clips are decoded from mp4 files during training.
    "video": {"steps": 8, "frames": 9, "batch": 2,
              "model": {"image_size": 64, "init_dim": 32, "codebook_size": 1024,
                        "layers": ["residual", ["compress_space", 64], "residual", ["compress_time", 96], "residual", "linear_attend_space",
                                   ["compress_space", 128], "attend_space", "attend_time"],
                        "discr_kwargs": {"dim": 16, "image_size": 64, "channels": 3, "max_dim": 128}}},
    # Autoencoders have the package's default size. The Python trainer has the meshes in memory; ours reads files during training.
    "mesh_autoencoder": {"steps": 6, "batch": 8, "meshes": True, "model": {}},
    "mesh_transformer": {"steps": 10, "batch": 8, "meshes": True,
                         "model": {"dim": 128, "attn_depth": 4, "attn_heads": 4, "max_seq_len": 1200,
                                   "autoencoder": {"codebook_size": 1024}}},
}
# Sounds are decoded during training from ogg and mp3 files, made by tools/samples/sample_sounds.py if no folder is given.
BYTES = {"num_tokens": 257, "max_seq_len": 64}
MODELS["mulan"] = {"steps": 12, "samples": 16000, "rate": 16000, "batch": 8,
                   "model": {"dim_latent": 128, "audio": {"dim": 256, "depth": 4, "heads": 4},
                             "text": {"dim": 256, "depth": 4, "heads": 4, **BYTES}}}
MODELS["nuwa"], MODELS["nuwa_tokens"] = nuwa.SPEC, nuwa.TOKENS
# The Python trainer computes the gradient penalty in every step and ignores its option; so does --compat. Our default
# follows the option: every fourth step.
OURS = {"millrace, same losses": ["--apply-grad-penalty-every", "1"], "millrace": []}
OURS_VIDEO = {"millrace": []}
OURS_AUTOENCODER = {"millrace, same batches": ["--bucket-window", "0"], "millrace": []}
# Variants: the same batches, batches of meshes of similar length, and precomputed codes.
OURS_MESHES = {"millrace, same batches": ["--bucket-window", "0"], "millrace": [], "millrace, from codes": ["codes"]}


def measured(command, environment):
    """Runs a process; returns its last printed line and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=complaints, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), complaints.seek(0)
        lines = [line for line in out.read().splitlines() if line.startswith("{")]
        if process.returncode != 0 or not lines:
            raise SystemExit(f"{command[0]} failed: {complaints.read()[-2000:]}")
    return json.loads(lines[-1]), usage.ru_maxrss / 1e3


class Bench:
    def __init__(self, args):
        self.root, self.work = args.root.resolve(), args.work.resolve()
        self.pictures, self.clips = args.pictures.resolve(), args.clips.resolve()
        self.sounds = args.sounds.resolve()
        self.meshes = args.meshes.resolve()
        self.vgg = self.work / "vgg_slim.pt"
        self.python = self.work / "trainers" / "bin" / "python"
        subprocess.run([self.python, HERE / "vgg.py", self.vgg], check=True)
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "CUDA_VISIBLE_DEVICES": ""}
        self.rows = {}
        self.threads = THREADS

    def measured(self, command):
        return measured(command, self.environment)

    def theirs(self, name):
        spec = MODELS[name]
        if "gifs" in spec:
            return nuwa.theirs(self, spec)
        shared = ["--steps", spec["steps"], "--warm", WARM, "--batch", spec.get("batch", BATCH), "--threads", THREADS,
                  "--model", json.dumps(spec["model"]), "--vgg", self.vgg]
        if "samples" in spec:
            sound = ["--samples", spec["samples"], "--rate", spec["rate"]]
            result, memory = measured([self.python, HERE / "trainer_mulan.py", "--folder", self.sounds, *sound, *shared[:-2]], self.environment)
            return result["steps_per_s"], memory, result
        if "meshes" in spec:
            codes = ["--autoencoder", self.autoencoder(spec)] if "autoencoder" in spec["model"] else []
            result, memory = measured([self.python, HERE / f"trainer_{name}.py", "--folder", self.meshes, *codes, *shared[:-2]], self.environment)
            return result["steps_per_s"], memory, result
        command = ([HERE / "trainer_video_tokenizer.py", "--folder", self.clips, "--frames", spec["frames"]] if "frames" in spec
                   else [HERE / "trainer_vqgan.py", "--folder", self.pictures, "--size", SIZE])
        result, memory = measured([self.python, *command, *shared], self.environment)
        return result["steps_per_s"], memory, result

    def ours(self, name, flags):
        spec = MODELS[name]
        if "gifs" in spec:
            return nuwa.ours(self, spec, flags)
        if "meshes" in spec:
            return self.mesh_trainer(name, spec, flags)
        program, own = (self.video_command(spec) if "frames" in spec else self.sound_command(spec) if "samples" in spec
                        else self.picture_command(spec))
        if "samples" not in spec:
            flags = ["--vgg", self.vgg, *flags]
        with tempfile.TemporaryDirectory() as results:
            result, memory = measured(
                [self.root / "build/release/bin" / program, *own(results), "--results-folder", results, "--num-train-steps", spec["steps"] + WARM,
                 "--batch-size", spec.get("batch", BATCH), "--threads", THREADS, "--json", "--quiet", "--valid-batches", 1,
                 *flags], self.environment)
        return result["steps_per_second"], memory, result

    def autoencoder(self, spec):
        path = self.work / "mesh_autoencoder.pt"
        if not path.exists():
            subprocess.run([self.python, HERE / "trainer_mesh_transformer.py", "--make", path, "--model", json.dumps(spec["model"])], check=True)
        return path

    def mesh_trainer(self, name, spec, flags):
        programs, source = self.root / "build/release/bin", self.meshes
        codes = ["--autoencoder", self.autoencoder(spec)] if "autoencoder" in spec["model"] else []
        if flags == ["codes"]:
            source, flags = self.work / "mesh_codes.arrow", []
            if not source.exists():
                subprocess.run([programs / "preprocess", "tokens", self.meshes, "--model", self.autoencoder(spec), "--out", source], check=True,
                               stdout=subprocess.DEVNULL)
        model = [part for key, value in spec["model"].items() if key != "autoencoder" for part in ("--" + key.replace("_", "-"), value)]
        with tempfile.TemporaryDirectory() as results:
            result, memory = measured(
                [programs / f"train_{name}", source, *codes, "--results-folder", results, "--checkpoint-folder", results, "--num-train-steps",
                 spec["steps"] + WARM, "--batch-size", spec["batch"], "--threads", THREADS, "--val-every", 0, "--checkpoint-every", 0, "--json",
                 "--quiet", *model, *flags], self.environment)
        return result["steps_per_second"], memory, result

    def picture_command(self, spec):
        model = [part for key, value in spec["model"].items() for part in ("--" + key.replace("_", "-"), value)]
        return "train_vqgan", lambda results: [self.pictures, "--image-size", SIZE, "--save-results-every", 10**9,
                                               "--save-model-every", 10**9, *model]

    def video_command(self, spec):
        model = dict(spec["model"])
        discr = model.pop("discr_kwargs")
        layers = [layer if isinstance(layer, str) else ":".join(map(str, layer)) for layer in model.pop("layers")]
        flags = [part for key, value in model.items() for part in ("--" + key.replace("_", "-"), value)]
        return "train_video_tokenizer", lambda results: [
            self.clips, "--num-frames", spec["frames"], *flags, "--layers", *layers, "--discr-dim", discr["dim"], "--discr-max-dim",
            discr["max_dim"], "--validate-every-step", 0, "--checkpoint-every-step", 0, "--checkpoints-folder", results]

    def sound_command(self, spec):
        model = dict(spec["model"])
        flags = [part for whose in ("audio", "text") for key, value in model.pop(whose).items()
                 for part in (f"--{whose}-" + key.replace("_", "-"), value)]
        flags += [part for key, value in model.items() for part in ("--" + key.replace("_", "-"), value)]
        return "train_mulan", lambda results: [self.sounds, "--data-max-length", spec["samples"], "--sample-rate", spec["rate"], *flags,
                                               "--save-results-every", 0, "--save-model-every", 0, "--checkpoint-every", 10**9]

    def run(self, name, rounds):
        video = "frames" in MODELS[name]
        theirs, peers = ("magvit2-pytorch", OURS_VIDEO) if video else ("muse-maskgit-pytorch", OURS)
        if "samples" in MODELS[name]:
            theirs, peers = "musiclm-pytorch", OURS_VIDEO
        if "meshes" in MODELS[name]:
            theirs, peers = "meshgpt-pytorch", OURS_MESHES if name == "mesh_transformer" else OURS_AUTOENCODER
        if "gifs" in MODELS[name]:
            theirs, peers = (nuwa.THEIRS_TOKENS, nuwa.OURS_TOKENS) if "tokens" in MODELS[name] else (nuwa.THEIRS, nuwa.OURS)
        print(f"{name}: {MODELS[name]}, {THREADS} threads", flush=True)
        for number in range(rounds):
            for peer in (theirs, *peers):
                run.wait_for_quiet()
                row = self.ours(name, peers[peer]) if peer in peers else self.theirs(name)
                self.rows.setdefault((name, peer), []).append(row)
                print(f"  round {number + 1}  {peer:24} {row[0]:7.3f} steps/s  data {100 * row[2]['data_wait']:5.2f} %  peak {row[1]:6.0f} MB", flush=True)

    def table(self):
        text = [f"Measured on {run.machine()}; medians of runs in turns, after {WARM} steps (NUWA {nuwa.SPEC['warm']}).", "",
                "| model | trainer | steps/s (lowest..highest) | to Python's | data, forward, backward, optimizer | peak memory |", "|---|---|---|---|---|---|"]
        for (name, peer), rows in self.rows.items():
            rate = lambda peer: statistics.median(row[0] for row in self.rows[name, peer])
            theirs = next(other for model, other in self.rows if model == name)  # the first of each model
            share = lambda part: 100 * statistics.median(r[2].get(part, 0) for r in rows)
            data, backward, optimizer = share("data_wait"), share("backward"), share("optimizer")
            parts = f", {100 - data - backward - optimizer:.0f}, {backward:.0f}, {optimizer:.0f} %" if backward > 0 else " %"
            text.append(f"| {name} | {peer} | {rate(peer):.2f} ({min(r[0] for r in rows):.2f}..{max(r[0] for r in rows):.2f}) "
                        f"| {rate(peer) / rate(theirs):.2f}x | {data:.2f}{parts} | {max(r[1] for r in rows):.0f} MB |")
        return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=["train"])
    for name in ("root", "work", "out"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    for name in ("pictures", "clips", "sounds", "meshes"):
        parser.add_argument("--" + name, type=pathlib.Path)
    args = parser.parse_args()
    args.pictures = args.pictures or args.work / "corpus" / "jpeg"
    args.clips = args.clips or args.work / "corpus" / "clips"
    args.sounds = args.sounds or args.work / "corpus" / "labelled_sounds"
    if "mulan" in args.only and not args.sounds.exists():
        subprocess.run([sys.executable, HERE.parents[1] / "samples/sample_sounds.py", args.sounds, "--count", "200", "--seconds", "3", "--rate", "44100",
                        "--format", "mixed"], check=True)
    args.meshes = args.meshes or args.work / "corpus" / "meshes"
    if {"mesh_autoencoder", "mesh_transformer"} & set(args.only) and not args.meshes.exists():
        subprocess.run([sys.executable, HERE.parents[1] / "samples/sample_meshes.py", args.meshes, "--count", "64", "--max-faces", "200"], check=True)
    bench = Bench(args)
    for name in args.only:
        bench.run(name, args.rounds)
    table = bench.table()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "train.md").write_text(table)
    print(f"\n{table}\nwritten: train.md in {args.out}")


if __name__ == "__main__":
    main()
