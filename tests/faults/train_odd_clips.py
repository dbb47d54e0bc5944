"""train_video_tokenizer on clips of every kind: different sizes, lengths, rates and codecs, a rotated clip, one of a single
frame, one empty, one truncated, one that is no video, and a picture. It trains, and the ledger lists what it left out.
usage: train_odd_clips.py"""
import json
import math
import os
import pathlib
import subprocess
import sys

from PIL import Image

from faults import temporary

TRAIN = os.environ.get("TRAIN_VIDEO_TOKENIZER", "train_video_tokenizer")
CLIPS = {  # name: size, rate, frames, encoder
    "long.mp4": ("96x64", "25", 70, ["-c:v", "libx264", "-preset", "ultrafast", "-g", "30"]),
    "upright.MOV": ("32x72", "30000/1001", 11, ["-c:v", "mpeg4"]),
    "slow.avi": ("64x64", "3", 9, ["-c:v", "mpeg4"]),
    "short.mkv": ("40x24", "50", 3, ["-c:v", "ffv1"]),
    "web.webm": ("48x32", "12", 8, ["-c:v", "libvpx", "-deadline", "realtime"]),
    "single.mp4": ("64x48", "25", 1, ["-c:v", "libx264", "-preset", "ultrafast"]),
    "moving.gif": ("30x30", "10", 6, []),
    "lossless.mp4": ("50x38", "24", 12, ["-c:v", "mpeg4", "-q:v", "2"]),
}
BAD = {"none.mp4", "empty.mp4", "cut.mp4"}


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True)


def make_folder(folder):
    folder.mkdir()
    for name, (size, rate, frames, encoder) in CLIPS.items():
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate={rate}", "-frames:v", frames, *encoder, folder / name)
    ffmpeg("-i", folder / "long.mp4", "-c", "copy", "-metadata:s:v", "rotate=90", folder / "turned.mp4")
    (folder / "none.mp4").write_bytes(b"this is no video at all" * 9)
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "cut.mp4").write_bytes((folder / "long.mp4").read_bytes()[:900])
    Image.new("RGB", (33, 41), (200, 100, 50)).save(folder / "picture.png")
    return folder


def main():
    with temporary() as place:
        place = pathlib.Path(place)
        media = make_folder(place / "media")
        run = subprocess.run(
            [TRAIN, media, "--dataset-type", "mixed", "--results-folder", place / "results", "--checkpoints-folder", place / "checkpoints",
             "--num-train-steps", "6", "--batch-size", "3", "--image-size", "16", "--num-frames", "5", "--layers", "compress_space:8",
             "compress_time", "--codebook-size", "16", "--init-dim", "4", "--input-conv-kernel-size", "3", "--discr-dim", "1",
             "--discr-max-dim", "8", "--valid-frac", "0.2", "--validate-every-step", "2", "--max-error-share", "0.5", "--threads", "1", "--workers", "2"],
            capture_output=True, text=True, timeout=200)
        if run.returncode != 0:
            sys.exit(f"it ended with {run.returncode}: {run.stderr}")
        lines = [json.loads(line) for line in (place / "results" / "metrics.jsonl").read_text().splitlines()]
        losses = [line["total_loss"] for line in lines if "total_loss" in line]
        if len(losses) != 6 or not all(map(math.isfinite, losses)):
            sys.exit(f"the losses are {losses}")
        told = {pathlib.Path(json.loads(line)["source"]).name for line in (place / "results" / "errors.jsonl").read_text().splitlines()}
        seen = told | {name for name in BAD if name in run.stderr}  # bad files of the validation set are only logged
        if not told or seen != BAD:
            sys.exit(f"the ledger names {sorted(told)}, all together {sorted(seen)}, not {sorted(BAD)}: {run.stderr}")
        with Image.open(place / "results" / "sampled.0.gif") as sample:
            if sample.size != (32, 16):
                sys.exit(f"the sample is {sample.size}")
        print(f"{len(CLIPS) + 2} odd files trained on, left out: {sorted(seen)}")


if __name__ == "__main__":
    main()
