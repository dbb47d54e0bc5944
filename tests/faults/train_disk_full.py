"""The disk fills up while a checkpoint, weights or pictures are written: one clear line, the old checkpoint unchanged, no
incomplete file. With free space the run continues and ends like one that always had space. Needs a small tmpfs, or
skips (77). usage: train_disk_full.py [ROUNDS]   more than one: with another amount of space each time"""
import os
import pathlib
import random
import subprocess
import sys

from faults import fill, make_images, small_disk, temporary

TRAIN = os.environ.get("TRAIN_VQGAN", "train_vqgan")
FIRST, STEPS = 4, 8


def train(media, results, steps):
    command = [TRAIN, media, "--results-folder", results, "--num-train-steps", steps, "--batch-size", 3, "--image-size", 16,
               "--dim", 16, "--layers", 1, "--discr-layers", 1, "--codebook-size", 16, "--encdec-num-resnet-blocks", 0,
               "--valid-frac", 0.2, "--checkpoint-every", 2, "--save-results-every", 3, "--save-model-every", 3,
               "--threads", 1, "--workers", 1, "--resume"]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)


def kept(results, suffixes=(".pt", ".png")):
    return {p.name: p.read_bytes() for p in sorted(results.iterdir()) if p.suffix in suffixes}


def one_round(media, disk, results, room, expected):
    """Trains with so much room, then with enough."""
    before = kept(results)
    filler = fill(disk, room)
    process = train(media, results, STEPS)
    lines = [line for line in process.stderr.splitlines() if line.startswith("train_vqgan:")]
    if process.returncode != 0 and (process.returncode != 1 or len(lines) != 1 or "space" not in lines[0]):
        sys.exit(f"{room} bytes: expected one line that tells of the full disk:\n{process.stderr}")
    after = kept(results)
    changed = [name for name in before if after.get(name) != before[name] and name in expected]
    if process.returncode != 0 and changed:
        sys.exit(f"{room} bytes: these are no longer as they were: {changed}")
    leftovers = [p.name for p in results.iterdir() if p.name.endswith(".tmp")]
    if leftovers:
        sys.exit(f"{room} bytes: left over: {leftovers}")
    filler.unlink()
    process_again = train(media, results, STEPS)
    if process_again.returncode != 0:
        sys.exit(f"{room} bytes: with room again it fails: {process_again.stderr}")
    if kept(results) != expected:
        sys.exit(f"{room} bytes: the results are not those of a run that always had room")
    print(f"{room} bytes: {lines[0] if lines else 'it fitted'}; the same in the end")
    return process.returncode


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    chance = random.Random(rounds)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 17)
        train(media, folder / "straight", STEPS)
        expected = kept(folder / "straight")
        size = max(map(len, expected.values()))
        for i in range(rounds):
            with small_disk(folder / f"disk{i}", f"{16 * size}") as disk:
                results = disk / "results"
                if train(media, results, FIRST).returncode != 0:
                    sys.exit("the run without faults failed")
                code = one_round(media, disk, results, size // 2 if i == 0 else chance.randint(0, 3 * size), expected)
                if i == 0 and code != 1:
                    sys.exit(f"with room for half a checkpoint it ended with {code}")


main()
