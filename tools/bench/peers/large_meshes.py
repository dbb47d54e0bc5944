#!/usr/bin/env python3
"""Generates bumpy spheres with any number of triangles, to measure large meshes.

usage: tools/bench/peers/large_meshes.py FOLDER [--count 20] [--faces 5000]
"""
import argparse
import math
import pathlib
import random


def ball(faces, seed):
    """A sphere of vertex rings between two poles, as OBJ text."""
    chance = random.Random(seed)
    around = max(3, round(math.sqrt(faces / 2)))
    rings = max(1, round(faces / (2 * around)))
    bumps = [(chance.uniform(1, 6), chance.uniform(1, 6), chance.uniform(0, 0.15)) for _ in range(3)]
    lines = ["v 0 0 1", "v 0 0 -1"]
    for i in range(rings):
        tilt = math.pi * (i + 1) / (rings + 1)
        for k in range(around):
            turn = 2 * math.pi * k / around
            r = 1 + sum(size * math.sin(a * turn) * math.sin(b * tilt) for a, b, size in bumps)
            lines.append(f"v {r * math.sin(tilt) * math.cos(turn):.6f} {r * math.sin(tilt) * math.sin(turn):.6f} {r * math.cos(tilt):.6f}")
    at = lambda i, k: 3 + i * around + k % around
    for k in range(around):
        lines += [f"f 1 {at(0, k)} {at(0, k + 1)}", f"f 2 {at(rings - 1, k + 1)} {at(rings - 1, k)}"]
        for i in range(rings - 1):
            lines += [f"f {at(i, k)} {at(i + 1, k)} {at(i + 1, k + 1)}", f"f {at(i, k)} {at(i + 1, k + 1)} {at(i, k + 1)}"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--faces", type=int, default=5000)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for i in range(args.count):
        (args.folder / f"ball_{i:04d}.obj").write_text(ball(args.faces, i))


if __name__ == "__main__":
    main()
