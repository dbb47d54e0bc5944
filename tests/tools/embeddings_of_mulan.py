"""Sounds and texts through `preprocess tokens` with a MuLaN, and `search` in the result: the embeddings equal those of the Python
package, and `search` finds the same rows as numpy. The model and the expected embeddings are in a fixture of tests/parity."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import pyarrow
import torch

PREPROCESS, SEARCH = os.environ.get("PREPROCESS", "preprocess"), os.environ.get("SEARCH", "search")
FIXTURE = pathlib.Path(__file__).resolve().parents[1] / "parity" / "fixtures" / "mulan_eval.pt"
RATE = 16000


def run(*command, code=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        sys.exit(f"expected exit code {code}, got {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    return done


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def write_wav(path, sound):
    """32-bit floating point, so that nothing is rounded."""
    data = sound.numpy().astype("<f4").tobytes()
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 3, 1, RATE, 4 * RATE, 4, 32, b"data", len(data))
    path.write_bytes(header + data)


def main():
    fixture = torch.load(FIXTURE, weights_only=True)
    state = {key.split("/", 1)[1]: value for key, value in fixture.items() if key.startswith(("param/", "buffer/"))}
    texts = ["".join(chr(token - 1) for token in row.tolist() if token != 3) for row in fixture["input/texts"]]
    wanted = {"audio": fixture["output/audio_latents"].numpy(), "text": fixture["output/text_latents"].numpy()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, bare = folder / "mulan.pt", folder / "bare.pt"
        torch.save({"model": state, "optim": {}, "config": fixture["config"], "data": {"sample_rate": RATE, "data_max_length": 0}}, model)
        torch.save(state, bare)  # as load_state_dict takes it: its configuration is in another file
        (folder / "config.json").write_text(fixture["config"])
        (folder / "sounds").mkdir()
        for i, (sound, text) in enumerate(zip(fixture["input/wavs"], texts)):
            write_wav(folder / "sounds" / f"{i}.wav", sound)
            (folder / "sounds" / f"{i}.txt").write_text(text + "\n")
        (folder / "sounds" / "bad.wav").write_bytes(b"no sound")
        for medium, name in (("audio", "sounds"), ("text", "sounds")):
            out = folder / f"{medium}.arrow"
            run(PREPROCESS, "tokens", folder / name, "--medium", medium, "--model", model, "--out", out)
            table = pyarrow.ipc.open_file(out).read_all()
            found = numpy.stack(table["embedding"].to_numpy())
            check(found.dtype == numpy.float32 and numpy.abs(found - wanted[medium]).max() < 1e-5, f"{medium}: {found} instead of {wanted[medium]}")
            check([caption.strip() for caption in table["caption"].to_pylist()] == texts, f"captions {table['caption']}")
        check("bad.wav" in (folder / "audio.arrow.errors.jsonl").read_text(), "the bad file is not told of")
        again = folder / "again.arrow"
        run(PREPROCESS, "tokens", folder / "sounds", "--model", bare, "--model-config", folder / "config.json", "--rate", RATE, "--out", again)
        check(pyarrow.ipc.open_file(again).read_all()["embedding"] == pyarrow.ipc.open_file(folder / "audio.arrow").read_all()["embedding"],
              "weights alone give other embeddings")

        # The texts of a sound, and the sounds of a text.
        for i in range(len(texts)):
            for cache, query, near in ((folder / "text.arrow", ["--sound", folder / "sounds" / f"{i}.wav"], wanted["text"] @ wanted["audio"][i]),
                                       (folder / "audio.arrow", ["--text", texts[i]], wanted["audio"] @ wanted["text"][i])):
                rows = json.loads(run(SEARCH, cache, "--model", model, *query, "--top", 2, "--json").stdout)
                check([row["row"] for row in rows] == numpy.argsort(-near)[:2].tolist(), f"{rows} of {near}")
                check(abs(rows[0]["cosine"] - near.max()) < 1e-5 and rows[0]["caption"] == texts[rows[0]["row"]], rows)
        own = json.loads(run(SEARCH, folder / "audio.arrow", "--row", 1, "--top", 1, "--json").stdout)[0]
        check(own["row"] == 1 and own["cosine"] > 0.9999 and own["source"].endswith("1.wav"), own)
        check(texts[1] in run(SEARCH, folder / "audio.arrow", "--row", 1, "--top", 1).stdout, "the table")

        # Called wrongly.
        other = folder / "other.pt"
        torch.save({"model": {**state, "audio.norm.learned_gamma": state["audio.norm.learned_gamma"] + 1}, "config": fixture["config"]}, other)
        for command, complaint in (([folder / "audio.arrow"], "one of --sound, --text and --row"),
                                   ([folder / "audio.arrow", "--text", "x"], "need the --model"),
                                   ([folder / "audio.arrow", "--row", 99], "no row 99"),
                                   ([folder / "audio.arrow", "--text", "x", "--model", other], "its weights differ"),
                                   ([folder / "audio.arrow", "--text", "x", "--model", folder / "none.pt"], "no such file")):
            check(complaint in run(SEARCH, *command, code=2).stderr, complaint)
    print(f"{len(texts)} sounds and texts: embeddings and what is found are Python's")


main()
