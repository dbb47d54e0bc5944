"""Three ranks write one cache, and one of them is killed: its shards are reassigned, and the file equals that of a
single process, byte for byte. With torchrun's agent, and without. usage: ranks.py [ROUNDS]"""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

from faults import FORMATS, PREPROCESS, check_same, files_of, make_images, must, preprocess, temporary

TORCHRUN = os.environ.get("TORCHRUN", "")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def start_ranks(arguments, world):
    port = free_port()
    return [subprocess.Popen([PREPROCESS, *map(str, arguments)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world),
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
            for rank in range(world)]


def work_begun(out, processes):
    """Until the first shard is on the disk, or all have ended."""
    while any(process.poll() is None for process in processes):
        if list(pathlib.Path(str(out) + ".parts").glob("shard-*")) or pathlib.Path(out).exists():
            return
        time.sleep(0.005)


def without_agent(arguments, out, expected, victim, delay):
    ranks = start_ranks([*arguments, "--out", out], 3)
    work_begun(out, ranks)
    time.sleep(delay)
    ranks[victim].send_signal(signal.SIGKILL)
    outputs = [rank.communicate(timeout=250) for rank in ranks]
    for number, rank in enumerate(ranks):
        if number != victim and rank.returncode != 0:
            sys.exit(f"rank {number} ended with {rank.returncode}:\n{outputs[number][1]}")
    check_same(expected, out, f"rank {victim} killed after {delay:.3f} s")
    return ranks[victim].returncode == -signal.SIGKILL


def with_agent(arguments, out, expected, chance, kill):
    command = [TORCHRUN, "--no-python", "--nproc-per-node", "3", "--master-port", free_port(),
               PREPROCESS, *map(str, arguments), "--out", str(out)]
    agent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if kill:
        work_begun(out, [agent])
        time.sleep(chance.uniform(0, 0.3))
        children = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True)
        with contextlib.suppress(ProcessLookupError, IndexError):  # it had ended already
            os.kill(chance.choice([int(pid) for pid in children.stdout.split()]), signal.SIGKILL)
    stdout, stderr = agent.communicate(timeout=250)
    if not kill and agent.returncode != 0:
        sys.exit(f"torchrun ended with {agent.returncode}:\n{stderr}")
    complete_at_once = pathlib.Path(out).exists()
    must(preprocess(*arguments, "--out", out))  # continues, if torchrun's 30 s were too short
    check_same(expected, out, "under torchrun")
    return complete_at_once, stderr


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    chance = random.Random(time.time_ns())
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = make_images(folder / "media", 480)
        for name in FORMATS if rounds > 1 else ("arrow",):
            file, flags = FORMATS[name]
            arguments = ["images", media, "--size", "40", "--shard-rows", "4", "--jobs", "1", *flags]
            (folder / "plain").mkdir()
            plain = folder / "plain" / file
            must(preprocess(*arguments, "--out", plain))
            expected = files_of(plain)
            shutil.rmtree(folder / "plain")
            died = 0
            for number in range(rounds):
                (folder / "out").mkdir()
                victim = number % 3  # the store ends with rank 0
                died += without_agent(arguments, folder / "out" / file, expected, victim,
                                      chance.uniform(0, 0.2))
                shutil.rmtree(folder / "out")
            print(f"{name}: {rounds} runs of three ranks, in {died} one was killed while it worked; "
                  f"the others ended well, all the same")
            for kill in () if not TORCHRUN else [False] + rounds * [True] if rounds > 1 else [True]:
                (folder / "out").mkdir()
                at_once, _ = with_agent(arguments, folder / "out" / file, expected, chance, kill)
                shutil.rmtree(folder / "out")
                print(f"{name}: under torchrun, {'one killed' if kill else 'none killed'}: the same"
                      f"{'' if at_once else ' after the same command again'}")


main()
