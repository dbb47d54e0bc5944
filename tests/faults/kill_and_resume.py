"""kill -9 at random moments, then the same command again: the files equal those of an uninterrupted run, byte for
byte. The same holds if one command is started three times at once.
usage: kill_and_resume.py [MOMENTS [SEED]]"""
import pathlib
import random
import signal
import subprocess
import sys
import time

from faults import FORMATS, PREPROCESS, check_same, files_of, make_images, must, preprocess, temporary

def kill_after(seconds, command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def main():
    moments = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 100000
    chance = random.Random(seed)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 160)
        (media / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
        for name, (file, flags) in FORMATS.items():
            arguments = ["images", media, "--size", "40", "--shard-rows", "10", "--jobs", "2", *flags]
            (folder / name).mkdir()
            plain = folder / name / file
            started = time.time()
            must(preprocess(*arguments, "--out", plain))
            lasted = time.time() - started
            expected = files_of(plain)
            killed = interrupted_twice = 0
            for moment in range(moments):
                (folder / f"{name}{moment}").mkdir()
                out = folder / f"{name}{moment}" / file
                command = [PREPROCESS, *map(str, arguments), "--out", str(out)]
                killed += kill_after(chance.uniform(0, lasted), command)
                if chance.random() < 0.3:  # once more, maybe during the join
                    interrupted_twice += kill_after(chance.uniform(0, lasted), command)
                must(preprocess(*arguments, "--out", out))
                check_same(expected, out, f"{name}, moment {moment}, seed {seed}")
            print(f"{name}: {moments} runs, {killed} killed, {interrupted_twice} of them twice "
                  f"(a whole run lasts {lasted * 1000:.0f} ms): all the same, seed {seed}")
            (folder / f"{name}.together").mkdir()
            out = folder / f"{name}.together" / file
            command = [PREPROCESS, *map(str, arguments), "--out", str(out)]
            together = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                        for _ in range(3)]
            for process in together:
                told = process.communicate()[1]
                if process.returncode != 0:
                    sys.exit(f"{name}: one of three at once ended with {process.returncode}: {told}")
            check_same(expected, out, f"{name}, three at once")


main()
