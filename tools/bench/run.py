"""Runs Millrace, the peers and the floors (libraries without a loader) on the same files, in several
interleaved rounds, each measurement in a new process. Writes results.jsonl (every measurement),
results.json, results.md and results.png.

usage: run.py decode|tokens|preprocess --root REPOSITORY --work FOLDER --out FOLDER [--rounds 3] [--only images clips] [--peers NAME...]
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# For each workload: (name, workers) of the peers, the floors, and Millrace's own programs.
WORKLOADS = {
    "images": {
        "files": "jpeg", "stride": 2, "passes": 2,
        "title": "JPEG files to [32, 3, 256, 256] uint8",
        "ours": [["bench_images"], ["bench_images", "--fast"]],
        "floors": [["floor_images", "full"], ["floor_images", "scaled"]],
        "peers": [("simplejpeg", 2), ("torchvision", 4), ("opencv", 2), ("spdl", 2), ("dali", 2), ("tf.data", 2),
                  ("pillow", 4)],
    },
    "clips": {
        "files": "clips", "stride": 1, "passes": 4,
        "title": "17 frames of an h264 clip to [4, 3, 17, 128, 128] uint8",
        "ours": [["bench_clips"]],
        "floors": [["floor_clips", "decode"], ["floor_clips", "scale"]],
        "peers": [("spdl", 4), ("spdl", 2), ("pyav", 4), ("opencv", 2), ("opencv_threads", 2), ("decord", 2),
                  ("torchcodec", 2)],
    },
    "gifs": {
        "files": "gif", "stride": 1, "passes": 4,
        "title": "17 frames of a GIF to [4, 3, 17, 128, 128] uint8",
        "ours": [["bench_clips", "--gifs"]],
        "floors": [],
        "peers": [("opencv_threads", 2), ("opencv", 2), ("spdl", 2), ("pillow", 2)],
    },
    "audio": {
        "files": "audio", "stride": 1, "passes": 2, "readable": True,
        "title": "random 2 s of a sound to [32, 48000] float32 at 24 kHz",
        "ours": [["bench_audio"]],
        "floors": [],
        "peers": [("soundfile_threads", 2), ("soundfile", 2), ("librosa", 2), ("torchcodec", 2), ("torchaudio", 2)],
    },
    "meshes": {
        "files": "mesh", "stride": 1, "passes": 2, "readable": True,
        "title": "mesh files to vertices float32 and faces int64",
        "ours": [["bench_meshes"]],
        "floors": [],
        "peers": [("assimp_threads", 2), ("trimesh", 4), ("trimesh", 2)],
    },
}
WORKLOADS |= {
    "tokens": {
        "title": "random rows of int64 [200000, 1024] to [64, 1024]", "passes": 1, "made": "tokens.bin",
        "ours": [["bench_tokens", "tokens.npy"], ["bench_tokens", "tokens.arrow"]],
        "floors": [["floor_tokens", "gather"]],
        "peers": [("numpy", 0), ("torch", 0), ("torch", 2)],
    },
    "preprocess": {
        "files": "jpeg", "stride": 1, "limit": 500, "passes": 1,
        "title": "500 JPEG files to one .npy of [256, 256, 3]: whole programs, until it is on the disk",
        "ours": [], "floors": [],
        "peers": [("millrace", 2), ("pillow", 2)],
    },
}
GROUPS = {"decode": ["images", "clips", "gifs", "audio", "meshes"], "tokens": ["tokens"],
          "preprocess": ["preprocess"]}
ENVIRONMENT_OF = {"dali": "dali", "tf.data": "tensorflow"}  # the other peers share one environment
WORKERS = 2  # threads of our own programs and of the floors


class Bench:
    def __init__(self, args):
        self.root, self.work, self.out = args.root.resolve(), args.work.resolve(), args.out.resolve()
        self.rounds, self.peers = args.rounds, args.peers
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "results.jsonl").write_text("")
        self.dead = set()

    def python(self, peer):
        return self.work / ENVIRONMENT_OF.get(peer, "torch") / "bin" / "python"

    def list_of(self, name):
        """A file with the workload's paths; with "readable" only those that all peers can read."""
        spec, path = WORKLOADS[name], self.work / f"{name}.txt"
        if "made" in spec:
            path.write_text(f"{self.make_tokens(self.work / spec['made'])}\n")
            return path
        files = sorted(str(file) for file in (self.work / "corpus" / spec["files"]).iterdir())[::spec["stride"]][:spec.get("limit")]
        if not spec.get("readable"):
            path.write_text("\n".join(files) + "\n")
        elif not path.exists():
            everything = self.work / f"{name}.all.txt"
            everything.write_text("\n".join(files) + "\n")
            chosen = subprocess.run([self.python(""), HERE / "peers/measure.py", name, "--readable", "--files", everything],
                                    check=True, capture_output=True, text=True).stdout
            path.write_text(chosen)
        subprocess.run(["cat", *path.read_text().splitlines()], stdout=subprocess.DEVNULL)  # warm page cache
        return path

    def make_tokens(self, path, rows=200000):
        """Raw rows, and two caches of Millrace with the same rows."""
        if not path.exists():
            code = ("import numpy, sys\nmake = numpy.random.default_rng(0)\nwith open(sys.argv[1] + '.new', 'wb') as file:\n"
                    " for _ in range(0, int(sys.argv[2]), 10000): file.write(make.integers(0, 50257, (10000, 1024)).tobytes())")
            subprocess.run([self.python(""), "-c", code, path, str(rows)], check=True)
            path.with_suffix(".bin.new").rename(path)
        for suffix in (".npy", ".arrow"):
            if not path.with_suffix(suffix).exists():
                subprocess.run([self.root / "build/bench/bin/bench_tokens", path.with_suffix(suffix), "--from", path],
                               check=True, stdout=subprocess.DEVNULL)
        return path

    def commands(self, name):
        spec, files = WORKLOADS[name], str(self.list_of(name))
        programs, passes = self.root / "build/bench/bin", str(spec["passes"])
        for program, *flags in spec["ours"]:
            if "made" in spec:
                yield [programs / program, self.work / flags[0], "--workers", str(WORKERS), "--passes", passes]
                continue
            yield [programs / program, *flags, files, "--workers", str(WORKERS), "--passes", passes]
        for program, mode in spec["floors"]:
            yield [programs / program, mode, str(WORKERS), passes, self.work / spec["made"] if "made" in spec else files]
        for peer, workers in spec["peers"]:
            if self.peers and peer not in self.peers:
                continue
            yield [self.python(peer), HERE / "peers/measure.py", name, peer, "--workers", str(workers), "--passes", passes,
                   "--files", files]

    def measure(self, workload, command, number):
        """Runs one measurement in a process. A command that fails is reported once and skipped in later rounds."""
        key = " ".join(map(str, command))
        if key in self.dead:
            return
        wait_for_quiet()
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
            shown, complaint = ran.stdout, ran.stderr
        except subprocess.TimeoutExpired:
            shown, complaint = "", "took more than 300 s"
        lines = [line for line in shown.splitlines() if line.startswith("{")]
        if not lines:
            self.dead.add(key)
            reason = " | ".join(complaint.strip().splitlines()[-3:])
            print(f"  {key}: FAILED: {reason}", flush=True)
            record = {"workload": workload, "peer": key, "error": reason}
        else:
            record = {**json.loads(lines[-1]), "round": number}
            print(f"  round {number + 1}  {record['peer']:24} {record['workers']} workers {record['items_per_s']:10.1f}/s"
                  f"  {1e3 * record['cpu_seconds_per_item']:8.3f} CPU ms  others {record['foreign_cores']:.2f}",
                  flush=True)
        with open(self.out / "results.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")

    def run(self, workload):
        print(f"{workload}: {WORKLOADS[workload]['title']}", flush=True)
        commands = list(self.commands(workload))
        for number in range(self.rounds):
            for command in commands:
                self.measure(workload, command, number)


def wait_for_quiet(limit_seconds=10):
    """Waits until other programs use little CPU, but not forever: every measurement records their CPU use."""

    def busy():
        ticks = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")

    end = time.monotonic() + limit_seconds
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.5)
        if busy() - before < 0.15:
            return


def summary(path):
    """Medians by workload, peer and number of workers; disturbed rounds count only if there is no clean one."""
    rounds = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if "error" not in record:
            rounds.setdefault((record["workload"], record["peer"], record["workers"]), []).append(record)
    rows = []
    for (workload, peer, workers), records in rounds.items():
        clean = [record for record in records if record["foreign_cores"] <= 0.2] or records
        median = lambda field: statistics.median(record[field] for record in clean)
        rows.append({
            "workload": workload, "peer": peer, "workers": workers, "version": clean[0]["version"],
            "items_per_s": median("items_per_s"), "lowest": min(r["items_per_s"] for r in clean),
            "highest": max(r["items_per_s"] for r in clean), "rounds": len(clean),
            "disturbed": clean[0]["foreign_cores"] > 0.2, "cpu_ms_per_item": 1e3 * median("cpu_seconds_per_item"),
            "peak_rss_mb": max(record["peak_rss_mb"] for record in clean), "files": clean[0]["files"]})
    return sorted(rows, key=lambda row: (list(WORKLOADS).index(row["workload"]), -row["items_per_s"]))


def machine():
    model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return f"{os.cpu_count()} cores ({model or platform.machine()}), {platform.system()} {platform.release()}"


def markdown(rows):
    text = [f"Measured on {machine()}. Median of interleaved rounds, each a fresh process; the page cache is warm.\n"]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        ours = next((row["items_per_s"] for row in mine if row["peer"].startswith("millrace")), 0)
        text.append(f"\n### {workload}: {WORKLOADS[workload]['title']} ({mine[0]['files']} files)\n")
        text.append("| | version | workers | items/s | lowest..highest (rounds) | millrace is | CPU ms/item | peak MB |")
        text.append("|---|---|---|---|---|---|---|---|")
        for row in mine:
            rate = lambda value: f"{value:.1f}" if value < 1000 else f"{value:.0f}"
            text.append(f"| {row['peer']} | {row['version']} | {row['workers']} | {rate(row['items_per_s'])}"
                        f"{' (disturbed)' if row['disturbed'] else ''} | {rate(row['lowest'])}..{rate(row['highest'])} "
                        f"({row['rounds']}) | {ours / row['items_per_s']:.2f}x | {row['cpu_ms_per_item']:.3f} | "
                        f"{row['peak_rss_mb']:.0f} |")
    return "\n".join(text) + "\n"


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row["workload"] for row in rows))
    figure, axes = pyplot.subplots(1, len(names), figsize=(4.2 * len(names), 4), squeeze=False)
    for axis, name in zip(axes[0], names):
        mine = sorted((row for row in rows if row["workload"] == name), key=lambda row: row["items_per_s"])
        floors = {" ".join(floor).replace("floor_images", "libjpeg-turbo").replace("floor_clips", "libav").replace("floor_tokens gather", "gather in C")
                  for floor in WORKLOADS[name]["floors"]}
        colours = ["#1b7a4b" if row["peer"].startswith("millrace") else "#bbbbbb" if row["peer"] in floors else "#4a78b5"
                   for row in mine]
        axis.barh([f"{row['peer']} ({row['workers']})" for row in mine], [row["items_per_s"] for row in mine],
                  color=colours, xerr=[[row["items_per_s"] - row["lowest"] for row in mine],
                                       [row["highest"] - row["items_per_s"] for row in mine]], ecolor="#333333")
        axis.set_title(name)
        axis.set_xlabel("items/s")
    figure.suptitle("Millrace (green), peers (blue), the raw library (grey); 2 cores")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", default=[])
    args = parser.parse_args()
    names = [name for name in GROUPS[args.group] if not args.only or name in args.only]
    if not names or set(args.only) - set(GROUPS[args.group]):
        sys.exit(f"--only takes {', '.join(GROUPS[args.group])}")
    bench = Bench(args)
    for name in names:
        bench.run(name)
    rows = summary(bench.out / "results.jsonl")
    (bench.out / "results.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    table = markdown(rows)
    (bench.out / "results.md").write_text(table)
    plot(rows, bench.out / "results.png")
    print(f"\n{table}\nwritten: results.md, results.json, results.jsonl and results.png in {args.out}")


if __name__ == "__main__":
    main()
