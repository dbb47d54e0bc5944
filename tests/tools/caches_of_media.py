"""Every medium through preprocess into every kind of cache, and every cache opened by other libraries: numpy
(mapped), pyarrow (mapped), Hugging Face's datasets, polars and DuckDB. Every value is compared with the decoders
of Pillow, ffmpeg, soundfile and trimesh."""
import json
import os
import pathlib
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import datasets
import duckdb
import numpy
import polars
import pyarrow
import soundfile
import trimesh
from PIL import Image, ImageSequence

from faults import inspect, must, preprocess, temporary

datasets.disable_progress_bars()
chance = numpy.random.default_rng(7)


def ffmpeg(*arguments):
    done = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, arguments)],
                          check=True, capture_output=True)
    return done.stdout


def picture(width, height):
    low = chance.integers(0, 256, (5, 6, 3), dtype=numpy.uint8)
    return Image.fromarray(low).resize((width, height), Image.BICUBIC)


# Each maker fills a folder, and returns the rows that a cache of it must have: one dictionary of
# arrays, texts and numbers per file, in the order of the names.

def images(folder):
    rows = []
    for i, suffix in enumerate((".png", ".BMP", ".webp", ".gif", ".jpg", ".Jpeg")):
        path = folder / f"p{i}{suffix}"
        options = {"lossless": True} if suffix == ".webp" else {"quality": 90} if "j" in suffix.lower() else {}
        picture(48 + i, 40 + 3 * i).save(path, **options)
        with Image.open(path) as image:
            rows.append({"image": numpy.asarray(image.convert("RGB"))})
    return rows


def middle(row, side):
    """The shorter side resized and the middle cut out, as torchvision has them."""
    image = Image.fromarray(row["image"])
    width, height = image.size
    wide, high = (side, side * height // width) if width <= height else (side * width // height, side)
    left, top = round((wide - side) / 2), round((high - side) / 2)
    image = image.resize((wide, high), Image.BILINEAR).crop((left, top, left + side, top + side))
    return {"image": numpy.asarray(image)}


def videos(folder):
    rows = []
    for i in range(3):
        path = folder / f"c{i}.mkv"
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=32x32:rate=8:duration={1 + i}", "-c:v", "ffv1",
               "-pix_fmt", "bgr0", path)
        frames = numpy.frombuffer(ffmpeg("-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"), numpy.uint8)
        rows.append({"video": frames.reshape(-1, 32, 32, 3)})
    return rows


def gifs(folder):
    rows = []
    for i in range(4):
        frames = [picture(24, 24).quantize(32 + 60 * i) for _ in range(3 + i)]
        path = folder / f"g{i}.gif"
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=100)
        (folder / f"g{i}.txt").write_text(f"caption {i} é\n")
        with Image.open(path) as image:
            shown = [numpy.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(image)]
        rows.append({"video": numpy.stack(shown), "caption": f"caption {i} é"})
    return rows


def of_length(row, frames):
    video = row["video"]
    taken = [min(i, len(video) - 1) for i in range(frames)]  # a short clip repeats its last frame
    return {**row, "video": video[taken], "valid_frames": min(frames, len(video))}


def meshes(folder):
    rows = []
    for i, kind in enumerate(("obj", "ply", "stl", "off", "glb")):
        trimesh.creation.icosphere(subdivisions=1, radius=1 + i).export(folder / f"m{i}.{kind}")
        mesh = trimesh.load(folder / f"m{i}.{kind}", process=False, force="mesh")
        rows.append({"triangles": mesh.vertices[mesh.faces].astype(numpy.float32)})
    return rows


def audio(folder):
    rows = []
    for i, (kind, subtype) in enumerate((("wav", "PCM_16"), ("wav", "FLOAT"), ("flac", "PCM_16"), ("flac", "PCM_24"))):
        path = folder / f"s{i}.{kind}"
        soundfile.write(path, chance.uniform(-0.9, 0.9, (900 + 100 * i, 2)), 16000, subtype=subtype)
        rows.append({"audio": soundfile.read(path, dtype="float32", always_2d=True)[0].T})
    return rows


def text(folder):
    for i in range(5):
        (folder / f"t{i}.txt").write_text(f"naïve 日本 {i} " * (i + 1))
    return [{"text": f"naïve 日本 {i} " * (i + 1)} for i in range(5)]


def codebook(folder):
    vectors = chance.random((300, 4 * 4 * 3), numpy.float32)
    numpy.save(folder.parent / "codebook.npy", vectors)
    return vectors


def tokens(row, vectors):
    """The nearest vector of every patch of 4 x 4 pixels, by rows."""
    pixels = row["image"].astype(numpy.float64) / 255
    side = pixels.shape[0] // 4
    patches = pixels.reshape(side, 4, side, 4, 3).transpose(0, 2, 1, 3, 4).reshape(side * side, -1)
    distances = ((patches[:, None] - vectors[None].astype(numpy.float64)) ** 2).sum(-1)
    return {"tokens": distances.argmin(1).reshape(side, side)}


# Those who open a cache give its columns as lists of what a row holds, flat.

def by_pyarrow(path):
    table = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all()
    table.validate(full=True)
    return {name: table[name].to_pylist() for name in table.column_names}


def by_datasets(path):
    loaded = datasets.load_dataset("arrow", data_files=str(path), split="train",
                                   cache_dir=str(path.parent / "huggingface"))
    return {name: loaded[name][:] for name in loaded.column_names}


def by_datasets_mapped(path):
    loaded = datasets.Dataset(pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all())
    return {name: loaded[name][:] for name in loaded.column_names}


def by_polars(path):
    return {column.name: column.to_list() for column in polars.read_ipc(path)}


def by_duckdb(path):
    cache = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all()
    found = duckdb.sql("select * from cache order by source").fetchall()
    return {name: list(values) for name, values in zip(cache.column_names, zip(*found))}


READERS = (by_pyarrow, by_datasets, by_datasets_mapped, by_polars, by_duckdb)


def same(found, wanted):
    if isinstance(wanted, (str, bytes)):
        return found == wanted
    wanted = numpy.asarray(wanted)
    return numpy.array_equal(numpy.asarray(found, wanted.dtype).reshape(-1), wanted.reshape(-1))


def check_columns(columns, rows, names, what):
    assert columns["source"] == names, (what, columns["source"])
    for field in rows[0]:
        for name, found, row in zip(names, columns[field], rows, strict=True):
            assert same(found, row[field]), f"{what}: '{field}' of {name} differs"


def check_array(array, rows, field, what):
    assert len(array) == len(rows), what
    for found, row in zip(array, rows):
        assert found.shape == numpy.shape(row[field]) and same(found, row[field]), what


def write(kind, folder, out, flags):
    return must(preprocess(kind, folder, "--out", out, "--quiet", *flags))


def dense(kind, folder, rows, field, flags):
    """As .npy and as a bare memmap with its shape beside."""
    out = folder.parent / f"{kind}.npy"
    write(kind, folder, out, flags)
    check_array(numpy.load(out, mmap_mode="r"), rows, field, out)
    raw = folder.parent / f"{kind}.bin"
    write(kind, folder, raw, [*flags, "--raw"])
    about = json.loads(pathlib.Path(f"{raw}.json").read_text())["millrace"]
    shape = [about["rows"], *about["fields"][0]["shape"]]
    check_array(numpy.memmap(raw, about["fields"][0]["dtype"], "r", shape=tuple(shape)), rows, field, raw)
    must(inspect(out, "--verify")), must(inspect(raw, "--verify"))
    return 2


def arrow(kind, folder, rows, flags, name=""):
    """Plain and compressed, through every reader."""
    names = [os.fspath(path) for path in sorted(folder.iterdir()) if kind != "gifs" or path.suffix == ".gif"]
    for compress in ([], ["--compress", "zstd:5"]):
        out = folder.parent / f"{kind}{name}{len(compress)}.arrow"
        write(kind, folder, out, [*flags, *compress])
        for reader in READERS:
            found = reader(out)
            check_columns(found, rows, [pathlib.Path(n).name for n in names], f"{out.name} {reader.__name__}")
        must(inspect(out, "--verify"))
    return 2


def encoded(kind, folder, rows, field, flags=()):
    """The files as they are, with what stands beside them."""
    paths = [p for p in sorted(folder.iterdir()) if kind != "gifs" or p.suffix == ".gif"]
    wanted = [{**{k: v for k, v in row.items() if k == "caption"}, field: path.read_bytes()}
              for row, path in zip(rows, paths)]
    return arrow(kind, folder, wanted, [*flags, "--store", "encoded"], "-encoded")


def triangles_of(columns):
    faces = [numpy.reshape(f, (-1, 3)) for f in columns["faces"]]
    vertices = [numpy.reshape(v, (-1, 3)).astype(numpy.float32) for v in columns["vertices"]]
    return [v[f] for v, f in zip(vertices, faces)]


def check_meshes(folder, rows):
    for compress in ([], ["--compress", "zstd"]):
        out = folder.parent / f"meshes{len(compress)}.arrow"
        write("meshes", folder, out, ["--no-normalize", "--no-sort", *compress])
        for reader in READERS:
            for found, row in zip(triangles_of(reader(out)), rows, strict=True):
                # Which corner comes first is the file's business; where the triangles are is not.
                key = lambda t: sorted(map(lambda c: sorted(map(tuple, c)), t.tolist()))
                assert key(found) == key(row["triangles"]), f"{out.name} {reader.__name__}"
    return 2 + encoded("meshes", folder, [{} for _ in rows], "mesh")


def main():
    made = 0
    with temporary() as root:
        folders = {}
        for make in (images, videos, gifs, meshes, audio, text):
            (pathlib.Path(root) / make.__name__).mkdir()
            folders[make.__name__] = pathlib.Path(root) / make.__name__
        rows = images(folders["images"])
        made += dense("images", folders["images"], [middle(r, 32) for r in rows], "image", ["--size", "32"])
        made += arrow("images", folders["images"], rows, ["--size", "0"])
        made += encoded("images", folders["images"], rows, "image")
        vectors = codebook(folders["images"])
        coded = [tokens(middle(r, 32), vectors) for r in rows]
        flags = ["--size", "32", "--model", folders["images"].parent / "codebook.npy"]
        made += dense("tokens", folders["images"], coded, "tokens", flags)
        made += arrow("tokens", folders["images"], coded, flags)
        for make in (videos, gifs):
            kind, folder = make.__name__, folders[make.__name__]
            rows = make(folder)
            ten = [of_length(r, 10) for r in rows]
            flags = ["--frames", "10", "--size", str(rows[0]["video"].shape[1])]
            made += dense(kind, folder, ten, "video", flags + ["--no-text"] * (kind == "gifs"))
            made += arrow(kind, folder, ten, flags)
            made += arrow(kind, folder, rows, ["--frames", "0", "--size", "0"], "-whole")
            made += encoded(kind, folder, rows, "video")
        made += check_meshes(folders["meshes"], meshes(folders["meshes"]))
        rows = audio(folders["audio"])
        made += arrow("audio", folders["audio"], rows, [])
        made += encoded("audio", folders["audio"], rows, "audio")
        window = [{"audio": r["audio"][:, :800]} for r in rows]
        made += dense("audio", folders["audio"], window, "audio", ["--seconds", "0.05", "--rate", "16000", "--channels", "2"])
        rows = text(folders["text"])
        made += arrow("text", folders["text"], rows, [])
        ids = [numpy.frombuffer(r["text"].encode(), numpy.uint8).astype(int) + 1 for r in rows]  # 0 pads
        padded = [{"tokens": numpy.pad(i, (0, 90 - len(i)))} for i in ids]
        made += dense("text", folders["text"], padded, "tokens", ["--tokenizer", "bytes", "--max-length", "90"])
        print(f"{made} caches of 7 media: every value is what others decode, whoever opens them")


main()
