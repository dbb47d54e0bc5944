"""What the fault tests share: sample media, running the programs, comparing caches byte for byte."""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import wave

import numpy
from PIL import Image

PREPROCESS = os.environ.get("PREPROCESS", "preprocess")
INSPECT = os.environ.get("INSPECT", "inspect")
# Every kind of cache for pictures: file name and flags.
FORMATS = {
    "npy": ("x.npy", []),
    "raw": ("x.bin", ["--raw"]),
    "arrow": ("x.arrow", []),
    "zstd": ("x.arrow", ["--compress", "zstd:3"]),
    "encoded": ("x.arrow", ["--store", "encoded"]),
}


def make_images(folder, count, side=48, suffixes=(".png", ".jpg", ".JPEG", ".bmp")):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    generator = numpy.random.default_rng(count)
    for i in range(count):
        low = generator.integers(0, 256, (4, 4, 3), dtype=numpy.uint8)
        size = (side + i % 7, side + i % 5)
        Image.fromarray(low).resize(size, Image.BICUBIC).save(folder / f"p{i:05d}{suffixes[i % len(suffixes)]}")
    return folder


def make_clips(folder, count):
    """GIFs of 2 to 8 frames."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    generator = numpy.random.default_rng(count)
    for i in range(count):
        frames = [Image.fromarray(generator.integers(0, 256, (18, 20 + i % 3, 3), dtype=numpy.uint8)) for _ in range(2 + i % 7)]
        frames[0].save(folder / f"c{i:05d}.gif", save_all=True, append_images=frames[1:], duration=40 + 10 * (i % 4))
    return folder


def make_sounds(folder, count):
    """Sounds of a tenth of a second, each with a caption beside it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    generator = numpy.random.default_rng(count)
    for i in range(count):
        samples = (generator.random(1600) * 20000 - 10000).astype("<i2")
        with wave.open(str(folder / f"s{i:05d}.wav"), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(16000)
            sound.writeframes(samples.tobytes())
        (folder / f"s{i:05d}.txt").write_text(f"noise number {i}")
    return folder


def make_meshes(folder, count):
    """Rings of triangles around two points, of several lengths."""
    folder.mkdir(parents=True)
    for i in range(count):
        n, chance = 3 + i % 5, random.Random(i)
        lines = ["v 0 0 0.9", "v 0 0 -0.8"] + [f"v {0.3 * k + 0.2 * chance.random()} {(-1) ** k * 0.4} {0.1 * k}" for k in range(n)]
        for k in range(n):
            lines += [f"f 1 {3 + k} {3 + (k + 1) % n}", f"f 2 {3 + (k + 1) % n} {3 + k}"]
        (folder / f"{i}.obj").write_text("\n".join(lines) + "\n")
    return folder


def preprocess(*arguments, environment=None, **options):
    """Runs to the end and returns the process; its output is text."""
    command = [PREPROCESS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120,
                          env={**os.environ, **(environment or {})}, **options)


def inspect(*arguments):
    return subprocess.run([INSPECT, *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=120)


def must(process, code=0):
    if process.returncode != code:
        sys.exit(f"expected exit code {code}, got {process.returncode}: {process.args}\n"
                 f"{process.stdout}\n{process.stderr}")
    return process


def files_of(out):
    """The cache and what stands beside it, by name."""
    out = pathlib.Path(out)
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(out.parent.glob(out.name + "*")) if p.is_file()}


def check_same(expected, out, what):
    found = files_of(out)
    if found != expected:
        sys.exit(f"{what}: the files differ:\n expected {expected}\n found    {found}")
    leftovers = [p.name for p in pathlib.Path(out).parent.glob(pathlib.Path(out).name + "*") if p.is_dir()]
    if leftovers:
        sys.exit(f"{what}: working folders are left over: {leftovers}")


def ledger(out):
    path = pathlib.Path(str(out) + ".errors.jsonl")
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of its own that is soon full; ends the test as skipped (77) where none can be had."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "millrace", folder],
                             capture_output=True)
    if mounted.returncode != 0:
        print("skipped: cannot mount a tmpfs here")
        sys.exit(77)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder])


def fill(disk, room):
    """Leaves so many bytes free. The file that takes the rest."""
    filler = disk / "filler"
    with open(filler, "wb") as full, contextlib.suppress(OSError):
        while full.write(bytes(1 << 16)):
            pass
    os.truncate(filler, filler.stat().st_size - room)
    return filler


def temporary(**options):
    return tempfile.TemporaryDirectory(prefix="millrace.", **options)
