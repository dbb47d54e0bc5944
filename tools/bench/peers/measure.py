"""Runs one peer and prints one JSON line, with the same fields as Millrace's own bench programs.
A small epoch is consumed as warm-up (workers start, code is loaded). Then one epoch is timed from an
empty pipeline to its last batch, so that no prefetched batch is counted. CPU time and memory include
all child processes.

usage: measure.py WORKLOAD PEER --workers 2 --files LIST      (LIST: a file with one path per line)
       measure.py WORKLOAD --readable --files LIST            prints the files that all peers can read
"""
import argparse
import importlib
import json
import os
import signal
import sys
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def process_tree():
    """(pid, fields of /proc/PID/stat after the name) of this process and all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append((int(entry), fields))
    own = open("/proc/self/stat").read().rpartition(")")[2].split()
    found = [(os.getpid(), own)]
    for pid, _ in found:  # the list grows during the loop
        found.extend(children.get(pid, []))
    return found


def cpu_seconds():
    return sum(int(ticks) for _, fields in process_tree() for ticks in fields[11:15]) / TICKS


def machine_busy_seconds():
    ticks = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


class PeakMemory(threading.Thread):
    """The peak of the resident memory of the process tree, sampled every half second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes = 0

    def look(self):
        self.bytes = max(self.bytes, sum(int(fields[21]) * PAGE for _, fields in process_tree()))

    def run(self):
        while True:
            self.look()
            time.sleep(0.5)


def size_of(batch):
    shape = getattr(batch, "shape", None)
    if callable(shape):
        shape = shape()
    return int(shape[0]) if shape is not None else len(batch)


def measure(workload, name, peer, workers, files, passes, warm):
    memory = PeakMemory()
    memory.start()
    started = time.perf_counter()
    first = None
    for _ in peer.epoch(min(warm, files)):
        first = first or time.perf_counter() - started
    cpu, busy, start, items = cpu_seconds(), machine_busy_seconds(), time.perf_counter(), 0
    for batch in peer.epoch(passes * files):
        items += size_of(batch)
    seconds = time.perf_counter() - start
    cpu, busy = cpu_seconds() - cpu, machine_busy_seconds() - busy
    memory.look()
    print(json.dumps({
        "workload": workload, "peer": name, "version": peer.version, "workers": workers, "note": peer.note,
        "items_per_s": items / seconds, "cpu_seconds_per_item": cpu / items, "cpu_busy_cores": cpu / seconds,
        "foreign_cores": max(0, busy - cpu) / seconds, "peak_rss_mb": memory.bytes / 1e6, "files": files,
        "items": items, "seconds": seconds, "first_batch_s": first}), flush=True)
    for pid, _ in process_tree()[1:]:  # kills our own workers; some would not exit by themselves
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(0)  # some peers hang or crash at exit, when the measurement is already done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--files", required=True)
    parser.add_argument("--readable", action="store_true")
    args = parser.parse_args()
    files = open(args.files).read().splitlines()
    module = importlib.import_module("peers_" + args.workload)
    if args.readable:
        print("\n".join(module.readable(files)))
        return
    if args.peer not in module.PEERS:
        sys.exit(f"unknown peer {args.peer}; choose one of {', '.join(module.PEERS)}")
    peer = module.PEERS[args.peer](files, args.workers)
    items = getattr(peer, "items", None) or len(files)
    measure(args.workload, args.peer, peer, args.workers, items, args.passes, module.WARM)


if __name__ == "__main__":
    main()
