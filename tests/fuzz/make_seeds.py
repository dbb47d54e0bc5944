"""Makes the small files that fuzzing starts from: make_seeds.py FOLDER [TARGET...]

All, or those of some targets. One folder per target (obj, png, video, ...). Pictures come from Pillow, sound and video from the
ffmpeg command, everything else is written here. What needs a tool that is missing is left out and
said so; the same tools give the same files.
"""
import base64
import gzip
import io
import json
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import wave
import zipfile
import zlib

OUT = pathlib.Path(sys.argv[1])


def save(target, name, data):
    path = OUT / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


# Meshes

CORNERS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 1)]
SIDES = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
BASE = (3, 2, 1, 0)
TRIANGLES = SIDES + [(3, 2, 1), (3, 1, 0)]


def obj_seeds():
    v = "".join("v %g %g %g\n" % c for c in CORNERS)
    f = "".join("f %d %d %d\n" % tuple(i + 1 for i in t) for t in SIDES) + "f 4 3 2 1\n"
    save("obj", "plain.obj", "# pyramid\no a\n" + v + f)
    save("obj", "slashes.obj", v + "vt 0 0\nvn 0 0 1\nf 1/1/1 2/1/1 5//1\nf 2/1 3/1 5/1\nl 1 2\np 1\n")
    save("obj", "relative.obj", v + "f -5 -4 -1\r\nf -4 \\\n -3 -1\nv 1e-3 -2.5E+2 +3 1.0 0.5 0.5\n")
    save("obj", "concave.obj", "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 1 .5 0\nv 0 2 0\nf 1 2 3 4 5\n")


def off_seeds():
    v = "".join("%g %g %g\n" % c for c in CORNERS)
    f = "".join("3 %d %d %d\n" % t for t in SIDES) + "4 3 2 1 0 255 0 0\n"
    save("off", "plain.off", "OFF\n# pyramid\n5 5 0\n" + v + f)
    save("off", "glued.off", "OFF5 5 0\n" + v + f)
    colours = "".join("%g %g %g 255 0 0 255\n" % c for c in CORNERS)
    save("off", "colours.off", "COFF\n5 5 0\n" + colours + f)


def ply_seeds():
    def header(form, extra="", kind="float", count="uchar"):
        return (f"ply\nformat {form} 1.0\ncomment seed\nelement vertex 5\nproperty {kind} x\n"
                f"property {kind} y\nproperty {kind} z\n{extra}element face 5\n"
                f"property list {count} int vertex_indices\nend_header\n").encode()
    text = "".join("%g %g %g\n" % c for c in CORNERS)
    text += "".join("3 %d %d %d\n" % t for t in SIDES) + "4 3 2 1 0\n"
    save("ply", "ascii.ply", header("ascii") + text.encode())
    for form, order in (("binary_little_endian", "<"), ("binary_big_endian", ">")):
        faces = b"".join(struct.pack(order + "B%di" % len(t), len(t), *t) for t in SIDES + [BASE])
        body = b"".join(struct.pack(order + "3f", *c) for c in CORNERS) + faces
        save("ply", form + ".ply", header(form) + body)
        body = b"".join(struct.pack(order + "3dB", *c, 7) for c in CORNERS)
        faces = b"".join(struct.pack(order + "H%di" % len(t), len(t), *t) for t in SIDES + [BASE])
        save("ply", form + "_double.ply",
             header(form, "property uchar red\n", "double", "ushort") + body + faces)
    strips = ("ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\n"
              "property float z\nelement tristrips 1\nproperty list int int vertex_indices\n"
              "end_header\n" + "".join("%g %g %g\n" % c for c in CORNERS) + "8 0 1 2 3 -1 2 3 4\n")
    save("ply", "strips.ply", strips)


def stl_seeds():
    facets = b"".join(struct.pack("<12fH", 0, 0, 1, *CORNERS[a], *CORNERS[b], *CORNERS[c], 0)
                      for a, b, c in TRIANGLES)
    save("stl", "binary.stl", b"seed".ljust(80) + struct.pack("<I", len(TRIANGLES)) + facets)
    text = "solid a\n"
    for t in TRIANGLES:
        text += "facet normal 0 0 1\n outer loop\n"
        text += "".join("  vertex %g %g %g\n" % CORNERS[i] for i in t) + " endloop\nendfacet\n"
    save("stl", "ascii.stl", text + "endsolid a\n")


def gltf_document(buffer, **extra):
    points = struct.pack("<15f", *(x for c in CORNERS for x in c))
    indices = struct.pack("<18H", *(i for t in TRIANGLES for i in t))
    blob = points + indices
    document = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"children": [1], "translation": [1, 2, 3], "rotation": [0, 0, 1, 0]},
                  {"mesh": 0, "scale": [-1, 1, 2]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "mode": 4}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 5, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 18, "type": "SCALAR"}],
        "bufferViews": [
            {"buffer": 0, "byteLength": len(points), "byteStride": 12},
            {"buffer": 0, "byteOffset": len(points), "byteLength": len(indices)}],
        "buffers": [{"byteLength": len(blob), **buffer(blob)}]}
    document.update(extra)
    return document, blob


def gltf_seeds():
    def embed(blob):
        return {"uri": "data:application/octet-stream;base64," + base64.b64encode(blob).decode()}
    document, _ = gltf_document(embed)
    save("gltf", "embedded.gltf", json.dumps(document))
    for mode in (5, 6):
        document["meshes"][0]["primitives"][0]["mode"] = mode
        save("gltf", f"mode{mode}.gltf", json.dumps(document))
    document, _ = gltf_document(embed)
    document["accessors"][0]["sparse"] = {
        "count": 1, "indices": {"bufferView": 1, "componentType": 5123},
        "values": {"bufferView": 0}}
    document["nodes"][1]["matrix"] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 4, 5, 6, 1]
    save("gltf", "sparse.gltf", json.dumps(document))
    document, blob = gltf_document(lambda blob: {})
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    blob += b"\0" * (-len(blob) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(blob), b"BIN\0") + blob
    save("gltf", "binary.glb", struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)


# Text

def text_seeds():
    samples = {
        "ascii.txt": b"a photo of a cat, it's 2 o'clock\r\nnext line\rlast",
        "marked.txt": b"\xef\xbb\xbf" + "caf\u00e9 na\u00efve \u0395\u03bb\u03bb\u03ac\u03b4\u03b1".encode(),
        "wide.txt": "\u65e5\u672c\u8a9e \U0001f600 \u00bd \u0130\u03a3".encode(),
        "utf16.txt": "hello".encode("utf-16"), "latin1.txt": "caf\u00e9".encode("latin-1"),
        "special.txt": b"<|startoftext|>hello&amp;amp; <|endoftext|> I'll we've"}
    for name, data in samples.items():
        save("text", name, data)
        save("tokenizer", name, data)
    merges = b"#version: 0.2\nt h\nth e</w>\ni n\nc a\nca t</w>\n"
    save("tokenizer", "merges.txt", merges)
    save("tokenizer", "merges.txt.gz", gzip.compress(merges, mtime=0))


# Pictures

def gradient(width, height, channels):
    values = bytearray()
    for y in range(height):
        for x in range(width):
            values += bytes((x * 9 + y * 5 + c * 70 + (x * y) % 7) % 256 for c in range(channels))
    return bytes(values)


def png(width, height, depth, kind, interlaced):
    """Every colour type and depth, which Pillow cannot write."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]

    def rows(xs, ys):
        data = b""
        for y in ys:
            bits = ""
            for x in xs:
                for c in range(channels):
                    bits += format((x * 37 + y * 11 + c * 5) % (1 << depth), f"0{depth}b")
            bits += "0" * (-len(bits) % 8)
            data += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""
        return data
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]
        data = b"".join(rows(range(x, width, dx), range(y, height, dy)) for x, y, dx, dy in passes)
    else:
        data = rows(range(width), range(height))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced)))
    if kind == 3:
        out += chunk(b"PLTE", bytes(i * 7 % 256 for i in range(3 << depth)))
        out += chunk(b"tRNS", bytes([0, 128]))
    return out + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def png_seeds():
    for kind, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (False, True):
                name = f"type{kind}_{depth}bit{'_interlaced' if interlaced else ''}.png"
                save("png", name, png(11, 9, depth, kind, interlaced))
    save("image", "rgb.png", png(11, 9, 8, 2, False))


def pillow_seeds():
    from PIL import Image
    rgb = Image.frombytes("RGB", (24, 17), gradient(24, 17, 3))

    def write(image, targets, name, form, **options):
        out = io.BytesIO()
        image.save(out, form, **options)
        for target in targets:
            save(target, name, out.getvalue())
    jpeg = ("jpeg", "image")
    write(rgb, jpeg, "baseline.jpg", "JPEG", quality=80)
    write(rgb, ("jpeg",), "full.jpg", "JPEG", quality=95, subsampling=0)
    write(rgb, jpeg, "progressive.jpg", "JPEG", progressive=True)
    write(rgb.convert("L"), jpeg, "grey.jpg", "JPEG")
    write(rgb.convert("CMYK"), jpeg, "cmyk.jpg", "JPEG")
    exif = Image.Exif()
    exif[0x0112] = 6
    write(rgb, jpeg, "rotated.jpg", "JPEG", exif=exif.tobytes())
    write(rgb, ("webp", "image"), "lossy.webp", "WEBP", quality=60)
    write(rgb, ("webp",), "lossless.webp", "WEBP", lossless=True)
    write(rgb.convert("RGBA"), ("webp",), "alpha.webp", "WEBP")
    for form, name in (("BMP", "a.bmp"), ("TIFF", "a.tiff"), ("PPM", "a.ppm"), ("TGA", "a.tga")):
        write(rgb, ("image",), name, form)
    write(rgb.convert("1"), ("image",), "bits.bmp", "BMP")
    write(rgb, ("image",), "lzw.tiff", "TIFF", compression="tiff_lzw")
    frames = [Image.frombytes("RGB", (16, 12), gradient(16, 12, 3)).rotate(90 * i).quantize(16)
              for i in range(4)]
    write(frames[0], ("gif", "image"), "still.gif", "GIF")
    for disposal in (0, 1, 2, 3):
        write(frames[0], ("gif",), f"disposal{disposal}.gif", "GIF", save_all=True, loop=0,
              append_images=frames[1:], duration=[50, 100, 0, 20], disposal=disposal)
    write(frames[0], ("gif",), "transparent.gif", "GIF", save_all=True, append_images=frames[1:],
          transparency=3, disposal=2, interlace=True)
    write(rgb, ("webp",), "moving.webp", "WEBP", save_all=True, append_images=[rgb.rotate(180)])


# Sound and video

def wav():
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"".join(struct.pack("<hh", (i * 997) % 20000 - 10000, i * 13 % 3000)
                                  for i in range(1600)))
    return out.getvalue()


def ffmpeg_seeds(folder):
    def run(target, name, *arguments):
        path = folder / name
        command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments, "-fflags", "+bitexact",
                   "-flags", "+bitexact", str(path)]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            save(target, name, path.read_bytes())
    save("audio", "pcm16.wav", wav())
    source = folder / "source.wav"
    source.write_bytes(wav())
    tone = ("-i", str(source))
    run("audio", "float.wav", *tone, "-c:a", "pcm_f32le")
    run("audio", "pcm24.wav", *tone, "-c:a", "pcm_s24le", "-ac", "1")
    run("audio", "a.flac", *tone)
    run("audio", "a.mp3", *tone, "-b:a", "32k")
    run("audio", "vorbis.ogg", *tone, "-c:a", "libvorbis")
    run("audio", "a.opus", *tone, "-c:a", "libopus", "-ar", "48000")
    run("audio", "a.m4a", *tone, "-c:a", "aac")
    clip = ("-f", "lavfi", "-i", "testsrc2=size=32x24:rate=8:duration=1", "-threads", "1")
    run("video", "h264.mp4", *clip, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-bf", "2", "-g", "4")
    run("video", "hevc.mp4", *clip, "-c:v", "libx265", "-x265-params", "log-level=none")
    run("video", "vp9.webm", *clip, "-c:v", "libvpx-vp9", "-b:v", "50k")
    run("video", "vp8.mkv", *clip, "-c:v", "libvpx", "-b:v", "50k")
    run("video", "mpeg4.avi", *clip, "-c:v", "mpeg4")
    run("video", "mjpeg.mov", *clip, "-c:v", "mjpeg", "-pix_fmt", "yuvj420p")
    run("video", "mpeg2.ts", *clip, "-c:v", "mpeg2video", "-r", "25")


# Caches

def npy_seeds():
    import numpy

    def npy(array, version):
        out = io.BytesIO()
        numpy.lib.format.write_array(out, array, version=version)
        return out.getvalue()
    for version in (1, 2, 3):
        for kind in ("?", "u1", "<i2", "<f2", "<i8", "<f8", ">i4", "<c8"):
            array = numpy.arange(24).reshape(4, 3, 2).astype(kind)
            save("npy", f"{kind.strip('<>?') or 'bool'}.{version}.npy", npy(array, (version, 0)))
    save("npy", "fortran.npy", npy(numpy.asfortranarray(numpy.ones((3, 4))), (1, 0)))
    save("npy", "empty.npy", npy(numpy.ones((0, 4)), (1, 0)))
    save("npy", "scalar.npy", npy(numpy.array(3), (1, 0)))


def arrow_seeds():
    import pyarrow as pa
    numbers = pa.array(range(24), pa.int16())
    table = pa.table({
        "one": pa.array([1.5, 2, 3, None]),
        "flag": pa.array([True, False, True, True]),
        "fixed": pa.FixedSizeListArray.from_arrays(numbers, 6),
        "flags": pa.array([[True, False]] * 4, pa.list_(pa.bool_(), 2)),
        "list": pa.array([[1], [], [2, 3], [4, 5, 6]], pa.list_(pa.int32())),
        "large": pa.array([[1], [], [2, 3], [4]], pa.large_list(pa.uint8())),
        "points": pa.array([[[1, 2]], [], [[3, 4], [5, 6]], []], pa.list_(pa.list_(pa.float32(), 2))),
        "text": pa.array(["a", "", "\u00e9", "word"]),
        "bytes": pa.array([b"x", b"", b"yz", b"\xff"]),
        "coded": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        "digest": pa.array([b"ab", b"cd", b"ef", b"gh"], pa.binary(2)),
    })
    for codec in (None, "zstd", "lz4"):
        for name in [*table.column_names, "all"]:
            part = table if name == "all" else table.select([name])
            out = io.BytesIO()
            with pa.ipc.new_file(out, part.schema,
                                 options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
                writer.write_table(part.slice(0, 3))
                writer.write_table(part.slice(3))
            save("arrow", f"{name}.{codec or 'plain'}.arrow", out.getvalue())


# Checkpoints

def storage_id(kind, key, elements):
    """A persistent id of torch.save: ("storage", class, record, device, elements)."""
    text = lambda t: b"X" + struct.pack("<I", len(t)) + t
    return (b"(" + text(b"storage") + b"c" + kind + b"\n" + text(key) + text(b"cpu")
            + b"J" + struct.pack("<i", elements) + b"tQ")


def tensor_pickle(function, kind, key, elements, offset, sizes, strides, rest=b""):
    numbers = lambda values: b"(" + b"".join(b"J" + struct.pack("<i", v) for v in values) + b"t"
    return (b"ctorch._utils\n" + function + b"\n(" + storage_id(kind, key, elements)
            + b"J" + struct.pack("<i", offset) + numbers(sizes) + numbers(strides)
            + b"\x89ccollections\nOrderedDict\n)R" + rest + b"tR")


def pickles():
    """Pickles over storages of 64 bytes named 0 and 1."""
    v2, v3 = b"_rebuild_tensor_v2", b"_rebuild_tensor_v3"
    float32, untyped = b"torch\nFloatStorage", b"torch.storage\nUntypedStorage"
    shared = {"a": [1, 2], "long_name": "x" * 40}
    yield "plain", pickle.dumps({"none": None, "yes": True, "n": -7, "big": 2**40, "real": 0.5, "text": "M\u00fchle",
                                 "bytes": b"\0\x80\xff", "list": [1, (2, 3), {}], 5: "five", "set": {4}}, 2)
    yield "protocol4", pickle.dumps([{"k": shared}, shared, b"bytes", "text", (1,), 3.5, 1 << 33], 4)
    yield "tensor", b"\x80\x02" + tensor_pickle(v2, float32, b"0", 16, 0, (4, 4), (4, 1)) + b"."
    yield "views", (b"\x80\x02](" + tensor_pickle(v2, float32, b"0", 16, 2, (2, 3), (3, 1))
                    + tensor_pickle(v2, float32, b"0", 16, 0, (3, 2), (1, 3))
                    + tensor_pickle(v2, b"torch\nLongStorage", b"0", 8, 0, (8,), (1,))
                    + tensor_pickle(v2, float32, b"1", 16, 0, (5, 0), (1, 1)) + b"e.")
    yield "untyped", b"\x80\x02" + tensor_pickle(v3, untyped, b"0", 64, 0, (3,), (1,), b"ctorch\nuint16\n") + b"."
    flags = b"}(X\x04\0\0\0conj\x88X\x03\0\0\0neg\x88u"
    yield "lazy", b"\x80\x02" + tensor_pickle(v2, b"torch\nComplexFloatStorage", b"0", 8, 0, (2,), (1,), flags) + b"."
    yield "parameter", (b"\x80\x02ctorch._utils\n_rebuild_parameter\n"
                        + tensor_pickle(v2, float32, b"0", 16, 0, (), ()) + b"\x88ccollections\nOrderedDict\n)R\x87R.")
    yield "state_dict", (b"\x80\x02ccollections\nOrderedDict\n)Rq\0(X\x01\0\0\0w"
                         + tensor_pickle(v2, float32, b"0", 16, 0, (16,), (1,)) + b"u}X\x09\0\0\0_metadataNsb.")
    yield "others", (b"\x80\x02](ctorch\nSize\nK\x02K\x03\x86\x85Rctorch\ndevice\nX\x03\0\0\0cpu\x85Rctorch\nbfloat16\n"
                     b"ccollections\nCounter\n}K\x05K\x02s\x85Rc__builtin__\nbytearray\nC\x02ab\x85Re.")


def archive_seeds(name, data):
    """The same records with and without checksums: without, damage goes past the zip reader."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for record, content in (("data.pkl", data), ("byteorder", b"little"), ("data/0", bytes(range(64))),
                                ("data/1", bytes(64)), ("version", b"3\n")):
            z.writestr(zipfile.ZipInfo("archive/" + record, (1980, 1, 1, 0, 0, 0)), content)
    whole = out.getvalue()
    unchecked = bytearray(whole)
    at = whole.find(b"PK\x01\x02")
    while at >= 0:
        unchecked[at + 16:at + 20] = bytes(4)
        at = whole.find(b"PK\x01\x02", at + 4)
    for target in ("zip", "checkpoint"):
        save(target, name + ".pt", whole)
        save(target, name + ".unchecked.pt", bytes(unchecked))


def checkpoint_seeds():
    for name, data in pickles():
        save("pickle", name + ".pkl", data)
        archive_seeds(name, data)
    try:
        import torch
    except (ImportError, OSError):  # a set-up without CUDA has LibTorch, but no torch for Python
        return
    out = io.BytesIO()
    base = torch.arange(24.).reshape(4, 6)
    torch.save({"model": {"a": base, "b": base.t(), "c": torch.ones(3, dtype=torch.uint16)}, "step": 3}, out)
    for target in ("zip", "checkpoint"):
        save(target, "torch.pt", out.getvalue())
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as z:
        save("pickle", "torch.pkl", z.read(next(n for n in z.namelist() if n.endswith("data.pkl"))))


def main():
    plain = {"obj": obj_seeds, "off": off_seeds, "ply": ply_seeds, "stl": stl_seeds, "gltf": gltf_seeds,
             "text": text_seeds, "png": png_seeds, "checkpoint": checkpoint_seeds}
    for target, make in plain.items():
        if target in sys.argv[2:] or not sys.argv[2:]:
            make()
    if sys.argv[2:]:
        return
    try:
        pillow_seeds()
    except ImportError:
        print("no Pillow: no seeds for jpeg, webp and gif")
    for make in (npy_seeds, arrow_seeds):
        try:
            make()
        except ImportError as missing:
            print(f"{missing}: no seeds of {make.__name__}")
    if shutil.which("ffmpeg"):
        with tempfile.TemporaryDirectory() as folder:
            ffmpeg_seeds(pathlib.Path(folder))
    else:
        print("no ffmpeg: no seeds for audio and video")
    for target in sorted(OUT.iterdir()):
        sizes = [f.stat().st_size for f in target.iterdir()]
        print(f"{target.name}: {len(sizes)} files, {sum(sizes)} bytes")


main()
