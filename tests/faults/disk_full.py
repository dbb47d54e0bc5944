"""The disk fills up: one clear line, finished shards kept; with room the same command ends well, and
the file is that of a run that had room from the start. Needs a small tmpfs, or skips (77)."""
import contextlib
import os
import pathlib
import subprocess
import sys

from faults import check_same, files_of, make_images, must, preprocess, temporary


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "millrace", folder],
                             capture_output=True)
    if mounted.returncode != 0:
        print("skipped: cannot mount a tmpfs here")
        sys.exit(77)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder])


def one_format(folder, media, name, file, flags, size):
    arguments = ["images", media, "--shard-rows", "8", *flags]
    (folder / name).mkdir()
    plain = folder / name / file
    must(preprocess(*arguments, "--out", plain))
    expected = files_of(plain)
    with small_disk(folder / f"{name}_disk", size) as disk:
        filler = disk / "filler"
        filler.write_bytes(os.urandom(int(size[:-1]) * 1024 - 500 * 1024))
        process = must(preprocess(*arguments, "--out", disk / file), 1 if "arrow" in file else 2)
        lines = [line for line in process.stderr.splitlines() if line.startswith("preprocess:")]
        if len(lines) != 1 or not ("space" in lines[0] or "room" in lines[0]):
            sys.exit(f"{name}: expected one line that tells of the full disk:\n{process.stderr}")
        shards = len(list(disk.glob(file + ".parts/shard-*[0-9]")))
        filler.unlink()
        again = must(preprocess(*arguments, "--out", disk / file))
        check_same(expected, disk / file, name)
        print(f"{name}: '{lines[0]}'; {shards} shards were kept; the same file in the end")
        if "arrow" in file and shards == 0:
            sys.exit(f"{name}: no finished shard was kept\n{again.stderr}")


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 120)
        # Rows of one size are known to be too many before anything is written; encoded files are not.
        one_format(folder, media, "npy", "x.npy", ["--size", "64"], "4096k")
        one_format(folder, media, "arrow", "x.arrow", ["--size", "0"], "8192k")


main()
