"""sample_digits, end to end: GIFs opened by Pillow and arrays by numpy hold the same clips and texts, the same seed gives the same
bytes, and a killed run leaves no incomplete file under a final name."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import numpy
from PIL import Image

from faults import must, temporary

SAMPLE_DIGITS = os.environ.get("SAMPLE_DIGITS", "sample_digits")
SIZE, FRAMES = 20, 4


def command(out, count, *more):
    return [SAMPLE_DIGITS, str(out), "--count", str(count), "--size", str(SIZE), "--frames", str(FRAMES), *map(str, more)]


def make(out, count, *more):
    must(subprocess.run(command(out, count, *more), capture_output=True, text=True, timeout=200))
    return out


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def frames_of(path):
    with Image.open(path) as gif:
        frames = []
        for i in range(gif.n_frames):
            gif.seek(i)
            frames.append(numpy.array(gif.convert("L")))
    return numpy.stack(frames)


def the_same_in_both(folder):
    gifs, array = make(folder / "gifs", 12), make(folder / "moving.npy", 12)
    clips = numpy.load(array)
    texts = array.with_suffix(".txt").read_text().splitlines()
    digits = numpy.load(folder / "moving.digits.npy")
    check(clips.shape == (12, FRAMES, 1, SIZE, SIZE) and len(texts) == 12 and digits.shape == (12, 1), (clips.shape, texts, digits.shape))
    check(sorted(p.name for p in gifs.iterdir()) == sorted(f"{i:05}.{end}" for i in range(12) for end in ("gif", "txt")), list(gifs.iterdir()))
    for i, text in enumerate(texts):
        check((gifs / f"{i:05}.txt").read_text() == text + "\n", text)
        check(re.fullmatch(rf"the digit {digits[i][0]} moves (left|right|up|down)", text), text)
        frames = frames_of(gifs / f"{i:05}.gif")
        check(frames.shape == (FRAMES, SIZE, SIZE) and numpy.abs(frames.astype(int) - clips[i, :, 0]).max() <= 8, (i, frames.shape))
        check(clips[i].max() == 255 and not numpy.array_equal(clips[i, 0], clips[i, -1]), f"{i}: nothing moves")


def the_same_again(folder):
    again, other = make(folder / "again", 12), make(folder / "other", 12, "--seed", 7)
    for path in sorted((folder / "gifs").iterdir()):
        check(path.read_bytes() == (again / path.name).read_bytes(), path.name)
    check(any(path.read_bytes() != (other / path.name).read_bytes() for path in again.glob("*.gif")), "another seed gives the same")


def without_spread(folder):
    """Then a text says all there is to say of a clip."""
    array = make(folder / "steady.npy", 120, "--spread", 0)
    clips, texts = numpy.load(array), array.with_suffix(".txt").read_text().splitlines()
    seen = {}
    for clip, text in zip(clips, texts):
        check(numpy.array_equal(seen.setdefault(text, clip), clip), text)
    check(len(seen) > 20 and len({clip.tobytes() for clip in seen.values()}) == len(seen), f"{len(seen)} texts, not as many clips")


def killed(folder):
    """Over what an earlier run left, too: that stays, or is replaced by what is whole."""
    whole = make(folder / "whole", 400)
    for number in range(4):
        out = folder / "killed"
        run = subprocess.Popen(command(out, 400), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.02 + 0.05 * number)
        run.send_signal(signal.SIGKILL)
        run.wait()
        for path in out.glob("*.*") if out.exists() else []:
            if path.suffix != ".part":
                check(path.read_bytes() == (whole / path.name).read_bytes(), f"{path.name} is not whole")
    make(folder / "killed", 400)
    check(sorted(p.name for p in (folder / "killed").iterdir()) == sorted(p.name for p in whole.iterdir()), "something is left over, or missing")


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        the_same_in_both(folder)
        the_same_again(folder)
        without_spread(folder)
        killed(folder)
        print("digits as GIFs and arrays: the same, again, and after a kill")


if __name__ == "__main__":
    main()
