"""A folder of every medium in which a tenth of the files is damaged, with empty files, folders named like
files, unreadable files, loops of links and impossible names: the run succeeds, the ledger lists each
bad file once with its reason, and the cache has all good files."""
import os
import pathlib
import subprocess
import sys

import numpy
from PIL import Image

from faults import ledger, make_images, must, preprocess, temporary

ODD_NAMES = [b"new\nline", b"inv\xff\xfealid", b"sp ace", "ünï".encode()]


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, arguments)], check=True)


def make_clips(folder, count):
    folder.mkdir()
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=2", "-pix_fmt", "yuv420p",
           folder / "c000.mp4")
    whole = (folder / "c000.mp4").read_bytes()
    for i in range(1, count):
        (folder / f"c{i:03d}.mp4").write_bytes(whole)


def make_gifs(folder, count):
    folder.mkdir()
    frames = [Image.fromarray(numpy.full((20, 24, 3), 20 * i, numpy.uint8)) for i in range(6)]
    for i in range(count):
        frames[0].save(folder / f"g{i:03d}.gif", save_all=True, append_images=frames[1:], duration=100)
        (folder / f"g{i:03d}.txt").write_text(f"gif number {i}")


def make_sounds(folder, count):
    folder.mkdir()
    ffmpeg("-f", "lavfi", "-i", "sine=frequency=440:duration=0.5:sample_rate=16000", folder / "s000.wav")
    ffmpeg("-i", folder / "s000.wav", folder / "s001.flac")
    for i in range(2, count):
        name = "s000.wav" if i % 2 == 0 else "s001.flac"
        (folder / f"s{i:03d}{name[4:]}").write_bytes((folder / name).read_bytes())


def make_meshes(folder, count):
    folder.mkdir()
    for i in range(count):
        vertices = "".join(f"v {x} {y} {x * y + i}\n" for x in range(4) for y in range(4))
        faces = "".join(f"f {a + 1} {a + 2} {a + 5}\n" for a in (0, 1, 2, 4, 5, 6, 8, 9, 10))
        (folder / f"m{i:03d}.obj").write_text(vertices + faces)


def make_texts(folder, count):
    folder.mkdir()
    for i in range(count):
        (folder / f"t{i:03d}.txt").write_text(f"text number {i}")


def damage(folder, suffix, pattern):
    """Returns the names of what is bad now. Every tenth file is cut, flipped or replaced."""
    bad = set()
    files = sorted(folder.glob(pattern))
    for i, path in enumerate(files[5::10]):
        data = path.read_bytes()
        if suffix == ".txt":
            path.write_bytes(b"\xff\xfe\x00 not UTF-8 \xc3\x28")
        elif i % 2 == 0 and suffix != ".wav":  # a truncated .wav is a valid, shorter sound
            path.write_bytes(data[: len(data) // 10])
        else:
            path.write_bytes(os.urandom(200) if suffix != ".obj" else b"v 1 2 nan\nf 1 2 3\n")
        bad.add(path.name)
    (folder / f"empty{suffix}").write_bytes(b"")
    bad.add(f"empty{suffix}")
    (folder / f"folder{suffix}").mkdir()  # not listed, since it is no file
    (folder / f"dangling{suffix}").symlink_to("nowhere")
    bad.add(f"dangling{suffix}")
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / "loop").symlink_to(".")
    if os.getuid() != 0:
        (folder / f"secret{suffix}").write_bytes(files[0].read_bytes())
        (folder / f"secret{suffix}").chmod(0)
        bad.add(f"secret{suffix}")
    good = files[0].read_bytes()
    for name in ODD_NAMES:
        with open(os.path.join(os.fsencode(folder), name + suffix.encode()), "wb") as file:
            file.write(good)
        if pattern == "*.gif":
            with open(os.path.join(os.fsencode(folder), name + b".txt"), "wb") as file:
                file.write(b"caption")
    if pattern == "*.gif":
        for name in ("empty", "dangling"):
            (folder / f"{name}.txt").write_text("caption")
        (folder / "alone.gif").write_bytes(good)
        (folder / "lonely.txt").write_text("no gif")
    return bad


KINDS = {
    "images": (lambda f, n: make_images(f, n, suffixes=(".png",)), ".png", "*.png",
               ["--size", "32"], ["x.npy", "x.arrow"]),
    "videos": (make_clips, ".mp4", "*.mp4", ["--size", "32", "--frames", "4"], ["x.npy", "x.arrow"]),
    "gifs": (make_gifs, ".gif", "*.gif", ["--size", "16", "--frames", "4"], ["x.arrow"]),
    "audio": (make_sounds, ".wav", "*.wav", ["--rate", "8000", "--mono"], ["x.arrow"]),
    "meshes": (make_meshes, ".obj", "*.obj", [], ["x.arrow"]),
    "text": (make_texts, ".txt", "*.txt", [], ["x.arrow"]),
}


def check(kind, folder, expected_bad, total_good, out, flags):
    process = must(preprocess(kind, folder, "--out", out, *flags, "--json"))
    import json
    cache = json.loads(process.stdout)["caches"][0]
    records = ledger(out)
    named = [os.path.basename(r["source"]) for r in records if r["stage"] != "listing"]
    problems = []
    if sorted(named) != sorted(expected_bad):
        problems.append(f"ledger has {sorted(named)}, expected {sorted(expected_bad)}")
    if len({r["source"] for r in records}) != len(records):
        problems.append("a file is listed twice")
    if any(not r["reason"] for r in records):
        problems.append("a reason is missing")
    if cache["rows"] != total_good or cache["failed"] != len(expected_bad):
        problems.append(f"{cache['rows']} rows and {cache['failed']} failures, expected {total_good} "
                        f"and {len(expected_bad)}")
    if problems:
        sys.exit(f"{kind} to {out}: " + "; ".join(problems) + "\n" + process.stderr)
    return records


def main():
    count = 40
    with temporary() as root:
        root = pathlib.Path(root)
        for kind, (make, suffix, pattern, flags, outs) in KINDS.items():
            folder = root / kind
            make(folder, count)
            bad = damage(folder, suffix, pattern)
            listed = bad | {f"pipe{suffix}"} if kind != "gifs" else bad
            for out in outs:
                (root / f"{kind}_out").mkdir(exist_ok=True)
                good = count - len([b for b in bad if b[0] == kind[0] or b[1:4].isdigit()]) + len(ODD_NAMES)
                records = check(kind, folder, listed, good, root / f"{kind}_out" / out, flags)
            reasons = sorted({r["reason"][:60] for r in records})
            print(f"{kind}: {len(listed)} bad files, each listed once, e.g. {reasons[:3]}")


main()
