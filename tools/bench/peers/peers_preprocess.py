"""Programs that convert a folder of pictures to one .npy file: preprocess, and a typical Python script
with Pillow and two processes. The time is that of the whole process, until the file is on the disk."""
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile

WARM, SIZE = 500, 256
PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "build/bench/bin/preprocess"
rows = None


def _open(path):
    import numpy

    global rows
    rows = numpy.lib.format.open_memmap(path, mode="r+")


def _load(task):
    """Resizes the shorter side and crops the centre, like torchvision."""
    import numpy
    from PIL import Image, ImageOps

    index, path = task
    try:
        with Image.open(path) as image:
            image = ImageOps.exif_transpose(image).convert("RGB")
        width, height = image.size
        wide, high = (SIZE, SIZE * height // width) if width <= height else (SIZE * width // height, SIZE)
        image = image.resize((wide, high), Image.BILINEAR)
        left, top = round((wide - SIZE) / 2), round((high - SIZE) / 2)
        rows[index] = numpy.asarray(image.crop((left, top, left + SIZE, top + SIZE)))
        return True
    except Exception:
        return False


def in_python(folder, out, processes=2):
    import numpy

    files = sorted((p for p in pathlib.Path(folder).rglob("*") if p.is_file()), key=os.fsencode)
    shape = (len(files), SIZE, SIZE, 3)
    numpy.lib.format.open_memmap(out, mode="w+", dtype=numpy.uint8, shape=shape).flush()
    with multiprocessing.Pool(processes, _open, (out,)) as pool:
        good = list(pool.imap(_load, [(i, str(f)) for i, f in enumerate(files)], chunksize=8))
    numpy.load(out, mmap_mode="r+").flush()
    return good


def _program(files, command, version):
    work = pathlib.Path(files[0]).parents[2]
    media = work / "preprocess_media"
    media.mkdir(exist_ok=True)
    for number, file in enumerate(files):
        link = media / f"{number:05d}{pathlib.Path(file).suffix.lower()}"
        if not link.exists():
            link.symlink_to(file)

    def epoch(count):
        with tempfile.TemporaryDirectory(dir=work) as out:
            subprocess.run([*command, media, "--out", f"{out}/x.npy"], check=True, stdout=subprocess.DEVNULL)
        yield range(count)

    from feeding import Peer

    return Peer(version, epoch, "a whole run, with its start and its end on the disk")


def _millrace(files, workers):
    told = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
    return _program(files, [PROGRAM, "images", "--quiet", "--jobs", str(workers), "--size", str(SIZE)],
                    "millrace " + told.split()[-1])


def _pillow(files, workers):
    import PIL

    return _program(files, [sys.executable, __file__], "pillow " + PIL.__version__)


PEERS = {"millrace": _millrace, "pillow": _pillow}

if __name__ == "__main__":
    print(json.dumps(in_python(sys.argv[1], sys.argv[3])))
