"""Training killed with -9 at random moments and resumed: every logged loss, every picture and all weights are those of
a run that nobody interrupted, bit for bit. usage: train_killed.py [STEPS [KILLS [SEED [FLAG...]]]]   more flags for train_vqgan"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from faults import make_images, temporary

TRAIN = os.environ.get("TRAIN_VQGAN", "train_vqgan")
MODEL = ["--dim", "16", "--layers", "2", "--discr-layers", "1", "--codebook-size", "64", "--image-size", "16"]


def command(media, results, steps, *more):
    return [TRAIN, str(media), "--results-folder", str(results), "--num-train-steps", str(steps), "--batch-size", "3",
            *MODEL, "--valid-frac", "0.2", "--save-results-every", "7", "--save-model-every", "9", "--checkpoint-every", "5",
            "--grad-accum-every", "2", "--schedule", "cosine", "--warmup-steps", "3", "--max-grad-norm", "1",
            "--threads", "1", "--workers", "2", "--quiet", *sys.argv[4:], *more]


def steps_logged(results):
    """How many steps the log holds."""
    path = results / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return max((json.loads(line)["step"] + 1 for line in lines if line.endswith("}")), default=0)


def kill_at(step, moment, run, results):
    """Kills the run once `step` steps are logged, `moment` seconds later. Whether it still ran."""
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and steps_logged(results) < step:
        time.sleep(0.001)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    if process.returncode not in (0, -signal.SIGKILL):
        sys.exit(f"the run failed: {said}")
    return process.returncode != 0


def outcome(results):
    """What must be the same: the log, and all pictures and weights."""
    kept = {p.name: p.read_bytes() for p in sorted(results.iterdir()) if p.suffix in (".png", ".pt")}
    return {"metrics.jsonl": (results / "metrics.jsonl").read_bytes(), **kept}


def main():
    steps, kills = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 24), (2, 2)))
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns() % 100000
    chance = random.Random(seed)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 17)
        straight, broken = folder / "straight", folder / "broken"
        started = time.time()
        subprocess.run(command(media, straight, steps), check=True, stdout=subprocess.DEVNULL)
        per_step = (time.time() - started) / steps
        killed = []
        for step in sorted(chance.sample(range(1, steps), kills)):
            if kill_at(step, chance.uniform(0, 2 * per_step), command(media, broken, steps, "--resume"), broken):
                killed.append(steps_logged(broken))
        subprocess.run(command(media, broken, steps, "--resume"), check=True, stdout=subprocess.DEVNULL)
        expected, found = outcome(straight), outcome(broken)
        differing = [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
        if differing:
            sys.exit(f"seed {seed}: killed after {killed} steps, these differ: {differing}")
        leftovers = [p.name for p in broken.iterdir() if p.name.endswith(".tmp")]
        if leftovers:
            sys.exit(f"seed {seed}: left over: {leftovers}")
        print(f"{steps} steps, killed with {killed} steps logged: {len(expected)} files are the same, seed {seed}")


main()
