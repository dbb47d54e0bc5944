"""SIGINT and SIGTERM end a run with exit code 128 + n and a line that says how to continue; a second signal ends it
at once. Job arrays (--shard i/n) write the same file, whichever part is last."""
import pathlib
import signal
import subprocess
import sys
import time

from faults import PREPROCESS, check_same, files_of, make_images, must, preprocess, temporary


def stopped(arguments, out, number):
    """Sends a signal as soon as a shard is done; the exit code and what was said."""
    process = subprocess.Popen([PREPROCESS, *map(str, arguments), "--out", str(out)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(pathlib.Path(str(out) + ".parts").glob("shard-*[0-9]")):
        time.sleep(0.002)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    return process.returncode, stderr


def main():
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 600)
        arguments = ["images", media, "--size", "128", "--shard-rows", "10", "--jobs", "1"]
        (folder / "plain").mkdir()
        plain = folder / "plain" / "x.arrow"
        must(preprocess(*arguments, "--out", plain))
        expected = files_of(plain)
        for number in (signal.SIGINT, signal.SIGTERM):
            for attempt in range(20):
                (folder / f"{number.name}{attempt}").mkdir()
                out = folder / f"{number.name}{attempt}" / "x.arrow"
                code, stderr = stopped(arguments, out, number)
                if code != 0:
                    break  # otherwise the run ended before the signal, on a busy machine
            if code != 128 + number or "the same command goes on" not in stderr:
                sys.exit(f"{number.name}: exit code {code}\n{stderr}")
            must(preprocess(*arguments, "--out", out))
            check_same(expected, out, number.name)
            print(f"{number.name}: ends with {128 + number}, and goes on")
        (folder / "array").mkdir()
        out = folder / "array" / "x.arrow"
        for part in (2, 0, 1):
            must(preprocess(*arguments, "--out", out, "--shard", f"{part}/3"))
        check_same(expected, out, "--shard i/3")
        print("--shard 2/3, 0/3, 1/3: the same file")


main()
