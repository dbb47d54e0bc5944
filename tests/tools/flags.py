"""Every flag of preprocess once: --split, --limit, --shard, --trace, --dump-graph, --dry-run, --json, --config,
--max-errors, --on-error, --compress, --fresh, --tokenizer, --table."""
import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

import numpy
import pyarrow

from faults import files_of, inspect, ledger, make_images, must, preprocess, temporary


def rows(path):
    return pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all().to_pylist()


def names(path):
    return [row["source"] for row in rows(path)]


def which_files(folder, media):
    """--limit takes the first, --split every file once and as the seed says, --shard the rest later."""
    files = sorted(p.name for p in media.iterdir())
    must(preprocess("images", media, "--out", folder / "first.arrow", "--limit", "7"))
    assert names(folder / "first.arrow") == files[:7]
    split = ["images", media, "--split", "train=0.8,valid=0.1,test=0.1", "--size", "16"]
    must(preprocess(*split, "--out", folder / "parts.arrow", "--seed", "3"))
    parts = {part: names(folder / f"parts.{part}.arrow") for part in ("train", "valid", "test")}
    assert sorted(sum(parts.values(), [])) == files and len(parts["train"]) == 24, parts
    assert all(part == sorted(part) for part in parts.values())
    must(preprocess(*split, "--out", folder / "other.arrow", "--seed", "4"))
    assert names(folder / "other.train.arrow") != parts["train"]
    must(preprocess(*split, "--out", folder / "again.arrow", "--seed", "3", "--jobs", "1"))
    for part in parts:
        one, other = folder / f"parts.{part}.arrow", folder / f"again.{part}.arrow"
        assert one.read_bytes() == other.read_bytes(), part
    shards = ["images", media, "--out", folder / "s.npy", "--size", "16", "--shard-rows", "4"]
    for part in ("0/3", "2/3"):
        must(preprocess(*shards, "--shard", part))
        assert not (folder / "s.npy").exists(), "joined before all shards were there"
    must(preprocess(*shards, "--shard", "1/3"))
    must(preprocess(*shards[:3], folder / "plain.npy", *shards[4:]))
    assert (folder / "s.npy").read_bytes() == (folder / "plain.npy").read_bytes()


def what_is_told(folder, media):
    """--json, --dry-run, --trace and --dump-graph are for programs: each is parsed."""
    out = folder / "told.npy"
    dry = must(preprocess("images", media, "--out", out, "--size", "16", "--dry-run", "--json"))
    assert not list(folder.glob("told*")), "a dry run wrote something"
    assert json.loads(dry.stdout)["caches"][0]["sources"] == 30, dry.stdout
    text = must(preprocess("images", media, "--out", out, "--dry-run")).stdout
    assert "30" in text and "told.npy" in text and not list(folder.glob("told*")), text
    done = must(preprocess("images", media, "--out", out, "--size", "16", "--json", "--trace",
                           folder / "trace.json", "--dump-graph", folder / "graph.dot"))
    told = json.loads(done.stdout)
    assert told["items"] == 30 and told["caches"][0]["rows"] == 30, told
    assert told["peak_bytes"] > 0 and told["items_per_s"] > 0 and told["limited_by"], told
    events = json.loads((folder / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    loads = [e for e in events if e.get("name") == "load" or "load" in str(e.get("cat", ""))]
    assert loads and all(e["dur"] >= 0 for e in loads if e.get("ph") == "X"), events[:3]
    assert (folder / "graph.dot").read_text().lstrip().startswith("digraph")
    again = json.loads(must(preprocess("images", media, "--out", out, "--size", "16", "--json")).stdout)
    assert again["caches"][0]["rows"] == 30 and again["items"] == 0, again
    assert json.loads(must(inspect(out, "--json", "--verify")).stdout)["verify"]["problems"] == []


def fresh_and_config(folder, media):
    out = folder / "f.arrow"
    (folder / "run.toml").write_text(f'out = "{out}"\nsize = 24\ncompress = "zstd:9"\nlimit = 5\nquiet = true\n')
    must(preprocess("images", media, "--config", folder / "run.toml"))
    assert json.loads(must(inspect(out, "--json")).stdout)["compression"] == "zstd:9"
    refused = must(preprocess("images", media, "--config", folder / "run.toml", "--size", "16"), 2)
    assert "24x24" in refused.stderr and "16x16" in refused.stderr, refused.stderr
    assert len(rows(out)[0]["image"]) == 24 * 24 * 3
    must(preprocess("images", media, "--config", folder / "run.toml", "--size", "16", "--fresh"))
    assert len(rows(out)) == 5 and len(rows(out)[0]["image"]) == 16 * 16 * 3
    small, large = folder / "z19.arrow", folder / "plain.arrow"
    must(preprocess("images", media, "--out", small, "--compress", "zstd:19"))
    must(preprocess("images", media, "--out", large))
    assert small.stat().st_size < large.stat().st_size
    assert [r["image"] for r in rows(small)] == [r["image"] for r in rows(large)]
    numpy.save(folder / "yours.npy", numpy.zeros(3))
    must(preprocess("images", media, "--out", folder / "yours.npy", "--fresh"), 2)
    assert len(numpy.load(folder / "yours.npy")) == 3, "a file of somebody else was removed"


def errors(folder, media):
    for name in ("bad1.png", "bad2.png", "bad3.png"):
        (media / name).write_bytes(b"\x89PNG\r\n\x1a\nno more")
    call = ["images", media, "--size", "16", "--quiet"]
    stopped = must(preprocess(*call, "--out", folder / "e1.npy", "--on-error", "fail"), 1)
    assert "bad" in stopped.stderr and not (folder / "e1.npy").exists()
    must(preprocess(*call, "--out", folder / "e2.npy", "--max-errors", "2"), 1)
    assert not (folder / "e2.npy").exists()
    must(preprocess(*call, "--out", folder / "e3.npy", "--max-errors", "3"))
    listed = [pathlib.Path(record["source"]).name for record in ledger(folder / "e3.npy")]
    assert listed == ["bad1.png", "bad2.png", "bad3.png"], listed
    # Mended, the same command over the same cache is of other files: refused, until --fresh.
    good = (media / "p00000.png").read_bytes()
    for name in listed:
        (media / name).write_bytes(good)
    must(preprocess(*call, "--out", folder / "e3.npy"), 2)
    must(preprocess(*call, "--out", folder / "e3.npy", "--fresh"))
    assert len(numpy.load(folder / "e3.npy")) == 33 and ledger(folder / "e3.npy") == []


def texts(folder):
    """Lines of a file; bytes and CLIP's pairs; ids in the smallest type; captions of a table."""
    (folder / "lines.txt").write_text("a cat\nzwei Hunde\n日本\n")
    must(preprocess("text", folder / "lines.txt", "--out", folder / "lines.arrow"))
    assert [r["text"] for r in rows(folder / "lines.arrow")] == ["a cat", "zwei Hunde", "日本"]
    with gzip.open(folder / "merges.txt.gz", "wt") as file:
        file.write("#version: 0.2\nc a\nca t</w>\nd o\ndo g</w>\n")
    must(preprocess("text", folder / "lines.txt", "--out", folder / "ids.npy", "--tokenizer",
                    f"bpe:{folder}/merges.txt.gz", "--max-length", "12"))
    ids = numpy.load(folder / "ids.npy")
    # 256 bytes, 256 bytes that end a word, then the merges.
    assert ids.dtype == numpy.uint16 and ids.shape == (3, 12), (ids.dtype, ids.shape)
    a, cat = ord("a") - ord("!") + 256, 513
    assert ids[0].tolist() == [a, cat] + [0] * 10, ids[0]
    must(preprocess("text", folder / "lines.txt", "--out", folder / "short.npy", "--tokenizer", "bytes",
                    "--max-length", "6", "--no-cut", "--dtype", "int64"))
    short = numpy.load(folder / "short.npy")
    assert short.dtype == numpy.int64 and len(short) == 2 and len(ledger(folder / "short.npy")) == 1


def main():
    with temporary() as root:
        for check in (which_files, what_is_told, fresh_and_config, errors):
            folder = pathlib.Path(root) / check.__name__
            folder.mkdir()
            check(folder, make_images(folder / "media", 30))
        texts(pathlib.Path(root))
    print("every flag did what it says")


main()
