"""Wrong use of a program gives one clear line and exit code 2; a failure gives one line and exit code 1; --help has
examples."""
import os
import pathlib
import sys

from faults import inspect, make_images, must, preprocess, temporary


def one_line(process, code, *words):
    must(process, code)
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    if len(lines) != 1 or not all(word in lines[0] for word in words):
        sys.exit(f"{process.args}: expected one line with {words}, got:\n{process.stderr}")
    print(f"  {code}  {lines[0]}")


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 12)
        (folder / "empty").mkdir()
        out = folder / "x.npy"
        for program in (preprocess, inspect):
            text = must(program("--help")).stdout
            if "Examples:" not in text:
                sys.exit(f"--help teaches too little:\n{text}")
        for command in ("images", "videos", "gifs", "meshes", "audio", "text", "tokens"):
            if "Examples:" not in must(preprocess(command, "--help")).stdout:
                sys.exit(f"{command} --help has no examples")
        one_line(preprocess(), 2, "--help")
        one_line(preprocess("imags", media), 2, "did you mean 'images'")
        one_line(preprocess("images", media, "--out", out, "--sise", "3"), 2, "--sise", "did you mean --size")
        one_line(preprocess("images", media), 2, "--out")
        one_line(preprocess("images", media, "--out", out, "--size", "big"), 2, "--size", "big")
        one_line(preprocess("images", media, "--out", out, "--jobs", "-1"), 2, "--jobs")
        one_line(preprocess("images", media, "--out", out, "--shard", "4/4"), 2, "--shard", "4/4")
        one_line(preprocess("images", media, "--out", out, "--split", "a=0.5,b=0.6"), 2, "add up to 1")
        one_line(preprocess("images", media, "--out", out, "--compress", "gzip"), 2, "zstd")
        one_line(preprocess("images", media, "--out", out, "--compress", "zstd:3"), 2, "compressed")
        one_line(preprocess("images", media, "--out", folder / "x.zip"), 2, "x.zip")
        one_line(preprocess("images", folder / "nowhere", "--out", out), 2, "nowhere")
        one_line(preprocess("images", folder / "empty", "--out", out), 2, "empty")
        one_line(preprocess("images", media, "--out", folder / "no" / "such" / "x.npy"), 2, "such")
        one_line(preprocess("images", media, "--out", "/proc/x.npy"), 2, "/proc/x.npy")
        one_line(preprocess("images", media, "--out", out, "--config", folder / "none.toml"), 2, "none.toml")
        (folder / "bad.toml").write_text("sise = 3\n")
        one_line(preprocess("images", media, "--out", out, "--config", folder / "bad.toml"), 2, "did you mean 'size'")
        one_line(preprocess("tokens", media, "--out", out, "--model", "vae.pt"), 2, "vae.pt: there is no such file")
        one_line(preprocess("gifs", media, "--out", out), 2)
        one_line(preprocess("images", media, "--out", out,
                            environment={"RANK": "0", "WORLD_SIZE": "two"}), 2, "WORLD_SIZE")
        one_line(inspect(), 2, "--doctor")
        one_line(inspect(folder / "nothing.npy"), 2, "nothing.npy")
        one_line(inspect(media), 2, "--doctor")
        (folder / "noise.npy").write_bytes(os.urandom(500))
        one_line(inspect(folder / "noise.npy"), 1, "noise.npy")
        (folder / "noise.jpg").write_bytes(os.urandom(500))
        one_line(inspect(folder / "noise.jpg"), 1, "noise.jpg")

        # A cache with other options is not overwritten; the message says what differs.
        must(preprocess("images", media, "--out", out, "--size", "32", "--quiet"))
        one_line(preprocess("images", media, "--out", out, "--size", "16", "--quiet"), 2, "32x32", "16x16", "--fresh")
        must(preprocess("images", media, "--out", out, "--size", "16", "--quiet", "--fresh"))
        # Keys of a configuration file are flags; the command line overrides them.
        (folder / "good.toml").write_text(f'out = "{folder}/y.npy"\nsize = 24\nquiet = true\n[images]\nchannels = 1\n')
        must(preprocess("images", media, "--config", folder / "good.toml", "--size", "20"))
        import numpy
        shape = numpy.load(folder / "y.npy").shape
        if shape != (12, 20, 20, 1):
            sys.exit(f"the configuration was not followed: {shape}")
        # Failures of the data
        (media / "zzz.png").write_bytes(b"nothing")
        fail = ["images", media, "--out", folder / "z.npy", "--quiet"]
        one_line(preprocess(*fail, "--on-error", "fail"), 1, "zzz.png")
        (media / "zzy.png").write_bytes(b"nothing")
        fail = ["images", media, "--out", folder / "z2.npy", "--quiet"]
        process = must(preprocess(*fail, "--max-errors", "1"), 1)
        if "max_count (1)" not in process.stderr:
            sys.exit(f"--max-errors: {process.stderr}")
        must(preprocess(*fail, "--max-errors", "2"))
        print("all wrong uses were told in one line")


main()
