"""Compares `preprocess images` with the same in Python (tools/bench/peers/peers_preprocess.py). Runs both programs alternately,
compares every pixel in the first round, and prints median times, CPU use and peak memory.
usage: preprocess_images.py PREPROCESS FOLDER [ROUNDS]"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

PEER = pathlib.Path(__file__).resolve().parents[2] / "tools/bench/peers/peers_preprocess.py"


def timed(command):
    started = time.time()
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return time.time() - started, json.loads(result.stdout)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    ours, theirs, shares, peaks = [], [], [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as work:
            seconds, good = timed([sys.executable, PEER, folder, "--out", f"{work}/python.npy"])
            theirs.append(seconds)
            seconds, result = timed([program, "images", folder, "--out", f"{work}/ours.npy", "--size", "256",
                                     "--quiet", "--json"])
            ours.append(seconds)
            shares.append(result["cpu_share"])
            peaks.append(result["peak_bytes"])
            if number == 0:
                mine = numpy.load(f"{work}/ours.npy", mmap_mode="r")
                other = numpy.load(f"{work}/python.npy", mmap_mode="r")[numpy.flatnonzero(good)]
                same = mine.shape == other.shape and int((mine != other).any(axis=(1, 2, 3)).sum())
                print(f"{result['items']} files, {len(mine)} rows here, {len(other)} in Python; rows that differ: {same}")
                print(result["limited_by"])
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"preprocess {a:.3f} s, Python with 2 processes {b:.3f} s: {b / a:.2f} times as fast "
          f"({', '.join(f'{y / x:.2f}' for x, y in zip(ours, theirs))})")
    print(f"CPU use {100 * statistics.median(shares):.1f} % of all cores "
          f"({', '.join(f'{100 * s:.0f}' for s in shares)}), peak memory {max(peaks) / 1e6:.0f} MB")


main()
