"""Trains the same model on the same pictures with train_vqgan and with the trainer in Python, in turns, every run a
fresh process, and prints a table: steps per second, share of the time spent waiting for data, peak memory.

usage: train.py --root REPOSITORY --work FOLDER --out FOLDER [--rounds 3] [--only tiny small] [--pictures FOLDER]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import run

HERE = pathlib.Path(__file__).resolve().parent
THREADS, SIZE, BATCH, WARM = 2, 128, 4, 5
MODELS = {
    "tiny": {"steps": 30, "model": {"dim": 16, "layers": 2, "codebook_size": 256, "discr_layers": 2}},
    "small": {"steps": 20, "model": {"dim": 32, "layers": 3, "codebook_size": 4096, "discr_layers": 3}},
}
# The trainer in Python has the gradient penalty in every step, whatever it is told; so has --compat's. Ours by
# default has it in every fourth, which is what the option says.
OURS = {"millrace, same losses": ["--apply-grad-penalty-every", "1"], "millrace": []}


def measured(command, environment):
    """One process: what it printed last, and its peak memory in MB."""
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
        self.root, self.work, self.pictures = args.root.resolve(), args.work.resolve(), args.pictures.resolve()
        self.vgg = self.work / "vgg_slim.pt"
        self.python = self.work / "trainers" / "bin" / "python"
        subprocess.run([self.python, HERE / "vgg.py", self.vgg], check=True)
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "CUDA_VISIBLE_DEVICES": ""}
        self.rows = {}

    def theirs(self, name):
        spec = MODELS[name]
        result, memory = measured([self.python, HERE / "trainer_vqgan.py", "--folder", self.pictures, "--steps", spec["steps"],
                                   "--warm", WARM, "--batch", BATCH, "--size", SIZE, "--threads", THREADS,
                                   "--model", json.dumps(spec["model"]), "--vgg", self.vgg], self.environment)
        return result["steps_per_s"], result["data_wait"], memory

    def ours(self, name, flags):
        spec = MODELS[name]
        model = [part for key, value in spec["model"].items() for part in ("--" + key.replace("_", "-"), value)]
        with tempfile.TemporaryDirectory() as results:
            result, memory = measured(
                [self.root / "build/release/bin/train_vqgan", self.pictures, "--results-folder", results,
                 "--num-train-steps", spec["steps"] + WARM, "--batch-size", BATCH, "--image-size", SIZE, "--threads", THREADS,
                 "--save-results-every", 10**9, "--save-model-every", 10**9, "--vgg", self.vgg, "--json", "--quiet",
                 "--valid-batches", 1, *model, *flags], self.environment)
        return result["steps_per_second"], result["data_wait"], memory

    def run(self, name, rounds):
        print(f"{name}: {MODELS[name]['model']}, {BATCH} pictures of {SIZE} x {SIZE}, {THREADS} threads", flush=True)
        for number in range(rounds):
            for peer in ("muse-maskgit-pytorch", *OURS):
                run.wait_for_quiet()
                row = self.ours(name, OURS[peer]) if peer in OURS else self.theirs(name)
                self.rows.setdefault((name, peer), []).append(row)
                print(f"  round {number + 1}  {peer:24} {row[0]:7.3f} steps/s  data {100 * row[1]:5.2f} %  peak {row[2]:6.0f} MB", flush=True)

    def table(self):
        text = [f"Measured on {run.machine()}; medians of runs in turns, after {WARM} steps.", "",
                "| model | trainer | steps/s (lowest..highest) | to Python's | waiting for data | peak memory |", "|---|---|---|---|---|---|"]
        for (name, peer), rows in self.rows.items():
            rate = lambda peer: statistics.median(row[0] for row in self.rows[name, peer])
            text.append(f"| {name} | {peer} | {rate(peer):.2f} ({min(r[0] for r in rows):.2f}..{max(r[0] for r in rows):.2f}) "
                        f"| {rate(peer) / rate('muse-maskgit-pytorch'):.2f}x | {100 * statistics.median(r[1] for r in rows):.2f} % "
                        f"| {max(r[2] for r in rows):.0f} MB |")
        return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=["train"])
    for name in ("root", "work", "out"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    args.pictures = args.pictures or args.work / "corpus" / "jpeg"
    bench = Bench(args)
    for name in args.only:
        bench.run(name, args.rounds)
    table = bench.table()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "train.md").write_text(table)
    print(f"\n{table}\nwritten: train.md in {args.out}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
