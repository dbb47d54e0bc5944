"""preprocess images against the same in Python: Pillow and multiprocessing into one .npy file. Runs both
as programs, in turn, and prints the medians; compares every pixel first.
usage: preprocess_images.py PREPROCESS FOLDER [ROUNDS [SIZE]]"""
import json
import multiprocessing
import os
import pathlib
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


def peer(folder, out, size):
    """The whole program in Python, as somebody would write it."""
    files = sorted((p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES),
                   key=lambda p: os.fsencode(p))
    print(json.dumps(with_python(files, out, size)))


def timed(command):
    started = time.time()
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.time() - started, json.loads(result.stdout)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    size = int(sys.argv[4]) if len(sys.argv) > 4 else 256
    ours, theirs, shares, peaks = [], [], [], []
    for round_number in range(rounds):
        with tempfile.TemporaryDirectory() as work:
            seconds, good = timed([sys.executable, __file__, "--peer", folder, f"{work}/python.npy", str(size)])
            theirs.append(seconds)
            seconds, told = timed([program, "images", folder, "--out", f"{work}/ours.npy", "--size", str(size),
                                   "--quiet", "--json"])
            ours.append(seconds)
            shares.append(told["cpu_share"])
            peaks.append(told["peak_bytes"])
            if round_number == 0:
                mine = numpy.load(f"{work}/ours.npy", mmap_mode="r")
                other = numpy.load(f"{work}/python.npy", mmap_mode="r")[good]
                same = mine.shape == other.shape and int((mine != other).any(axis=(1, 2, 3)).sum())
                print(f"{told['items']} files, {len(mine)} rows here, {len(other)} in Python; rows that differ: {same}")
                print(told["limited_by"])
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"preprocess {a:.3f} s, Python with 2 processes {b:.3f} s: {b / a:.2f} times as fast "
          f"({', '.join(f'{y / x:.2f}' for x, y in zip(ours, theirs))})")
    print(f"processor {100 * statistics.median(shares):.1f} % of all cores "
          f"({', '.join(f'{100 * s:.0f}' for s in shares)}), peak memory {max(peaks) / 1e6:.0f} MB")


if __name__ == "__main__" and sys.argv[1] == "--peer":
    peer(sys.argv[2], sys.argv[3], int(sys.argv[4]))
elif __name__ == "__main__":
    main()
