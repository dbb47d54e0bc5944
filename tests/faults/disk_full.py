"""The disk fills up: one clear line, and finished shards are kept. With free space the same command succeeds, and
the file equals that of a run that always had space. Needs a small tmpfs, or skips (77).
usage: disk_full.py [ROUNDS]   more than one: every format, with another amount of space each time"""
import pathlib
import random
import sys

from faults import check_same, files_of, fill, make_images, must, preprocess, small_disk, temporary


def one_format(folder, media, name, flags, room_kb):
    """Runs with so much room, then with enough."""
    file = {"npy": "x.npy", "raw": "x.bin"}.get(name, "x.arrow")
    arguments = ["images", media, "--shard-rows", "8", *flags]
    (folder / name).mkdir(exist_ok=True)
    plain = folder / name / file
    must(preprocess(*arguments, "--out", plain))
    expected = files_of(plain)
    with small_disk(folder / f"{name}_disk", "16m") as disk:
        filler = fill(disk, 1024 * room_kb)
        process = preprocess(*arguments, "--out", disk / file)
        lines = [line for line in process.stderr.splitlines() if line.startswith("preprocess:")]
        if process.returncode != 0 and (len(lines) != 1 or not ("space" in lines[0] or "room" in lines[0])):
            sys.exit(f"{name}: expected one line that tells of the full disk:\n{process.stderr}")
        shards = len(list(disk.glob(file + ".parts/shard-*[0-9]")))
        filler.unlink()
        must(preprocess(*arguments, "--out", disk / file))
        check_same(expected, disk / file, name)
        print(f"{name}, {room_kb} kB: {lines[0] if lines else 'it fitted'}; {shards} shards were kept; the same file in the end")
        return process.returncode, shards


# For rows of fixed size the space is checked before anything is written; for others it cannot be.
FORMATS = {"npy": ["--size", "64"], "raw": ["--size", "64", "--raw"], "arrow": ["--size", "0"],
           "zstd": ["--size", "0", "--compress", "zstd:3"], "encoded": ["--store", "encoded"]}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    chance = random.Random(rounds)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 120)
        if one_format(folder, media, "npy", FORMATS["npy"], 500)[0] != 2:
            sys.exit("npy: it should have been told beforehand that the room is too small")
        code, shards = one_format(folder, media, "arrow", FORMATS["arrow"], 500)
        if code != 1 or shards == 0:
            sys.exit(f"arrow: it ended with {code}, and {shards} shards were kept")
        for _ in range(rounds if rounds > 1 else 0):
            for name, flags in FORMATS.items():
                one_format(folder, media, name, flags, chance.randint(1, 3000))


main()
