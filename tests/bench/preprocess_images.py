"""preprocess images against the same in Python: Pillow and multiprocessing into one .npy file. Runs both
in turn and prints the medians; compares every pixel first.
usage: preprocess_images.py PREPROCESS FOLDER [ROUNDS [SIZE]]"""
import json
import multiprocessing
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from PIL import Image, ImageOps

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif"}
rows = None


def start(path, shape):
    global rows
    rows = numpy.lib.format.open_memmap(path, mode="r+")


def load(task):
    """Resize of the shorter side and crop of the middle, as torchvision has them."""
    index, path, size = task
    try:
        with Image.open(path) as image:
            image = ImageOps.exif_transpose(image).convert("RGB")
        width, height = image.size
        short = min(width, height)
        wide, high = (size, size * height // width) if width <= height else (size * width // height, size)
        image = image.resize((wide, high), Image.BILINEAR)
        left, top = round((wide - size) / 2), round((high - size) / 2)
        rows[index] = numpy.asarray(image.crop((left, top, left + size, top + size)))
        return index, True
    except Exception:
        return index, False


def with_python(files, out, size, processes=2):
    numpy.lib.format.open_memmap(out, mode="w+", dtype=numpy.uint8, shape=(len(files), size, size, 3)).flush()
    tasks = [(i, str(f), size) for i, f in enumerate(files)]
    with multiprocessing.Pool(processes, start, (out, None)) as pool:
        good = [index for index, ok in pool.imap(load, tasks, chunksize=8) if ok]
    array = numpy.load(out, mmap_mode="r+")
    array.flush()
    return good


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    size = int(sys.argv[4]) if len(sys.argv) > 4 else 256
    files = sorted((p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES), key=lambda p: os.fsencode(p))
    ours, theirs, shares, peaks = [], [], [], []
    with tempfile.TemporaryDirectory() as work:
        for round_number in range(rounds):
            started = time.time()
            good = with_python(files, f"{work}/python.npy", size)
            theirs.append(time.time() - started)
            started = time.time()
            result = subprocess.run([program, "images", folder, "--out", f"{work}/ours.npy", "--size", str(size),
                                     "--fresh", "--quiet", "--json"], capture_output=True, text=True)
            ours.append(time.time() - started)
            told = json.loads(result.stdout)
            shares.append(told["cpu_share"])
            peaks.append(told["peak_bytes"])
            if round_number == 0:
                mine = numpy.load(f"{work}/ours.npy", mmap_mode="r")
                other = numpy.load(f"{work}/python.npy", mmap_mode="r")[good]
                same = mine.shape == other.shape and int((mine != other).any(axis=(1, 2, 3)).sum())
                print(f"{len(files)} files, {len(mine)} rows here, {len(other)} in Python; rows that differ: {same}")
                print(told["limited_by"])
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"preprocess {a:.3f} s, Python with 2 processes {b:.3f} s: {b / a:.2f} times as fast "
          f"({', '.join(f'{y / x:.2f}' for x, y in zip(ours, theirs))})")
    print(f"processor {100 * statistics.median(shares):.1f} % of all cores, peak memory {max(peaks) / 1e6:.0f} MB")


main()
