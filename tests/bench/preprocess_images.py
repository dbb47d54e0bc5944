"""preprocess images against the same in Python (tools/bench/peers/peers_preprocess.py), as whole programs in turn:
compares every pixel first, and prints medians, the processor's share and the peak memory.
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
            seconds, told = timed([program, "images", folder, "--out", f"{work}/ours.npy", "--size", "256",
                                   "--quiet", "--json"])
            ours.append(seconds)
            shares.append(told["cpu_share"])
            peaks.append(told["peak_bytes"])
            if number == 0:
                mine = numpy.load(f"{work}/ours.npy", mmap_mode="r")
                other = numpy.load(f"{work}/python.npy", mmap_mode="r")[numpy.flatnonzero(good)]
                same = mine.shape == other.shape and int((mine != other).any(axis=(1, 2, 3)).sum())
                print(f"{told['items']} files, {len(mine)} rows here, {len(other)} in Python; rows that differ: {same}")
                print(told["limited_by"])
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"preprocess {a:.3f} s, Python with 2 processes {b:.3f} s: {b / a:.2f} times as fast "
          f"({', '.join(f'{y / x:.2f}' for x, y in zip(ours, theirs))})")
    print(f"processor {100 * statistics.median(shares):.1f} % of all cores "
          f"({', '.join(f'{100 * s:.0f}' for s in shares)}), peak memory {max(peaks) / 1e6:.0f} MB")


main()
