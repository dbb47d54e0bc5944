"""Random rows of a memory-mapped array, int64 [rows, 1024], as torch tensors in batches of 64."""
import numpy
import torch

from feeding import Peer, processes

LENGTH, BATCH, WARM = 1024, 64, 65536


def _map(files):
    return numpy.memmap(files, numpy.int64, "r").reshape(-1, LENGTH)


def _numpy(files, workers):
    rows, chance = _map(files[0]), numpy.random.default_rng(1)

    def epoch(count):
        while count > 0:
            order = chance.permutation(len(rows))[:count]
            count -= len(order)
            for at in range(0, len(order), BATCH):
                yield torch.from_numpy(rows[order[at:at + BATCH]])

    return Peer("numpy " + numpy.__version__, epoch, "a bare loop of fancy indexing", len(rows))


def _torch(files, workers):
    rows = _map(files[0])
    load = lambda index: torch.from_numpy(numpy.array(rows[index]))
    epoch = processes(range(len(rows)), load, BATCH, workers)
    return Peer("torch " + torch.__version__, epoch, "DataLoader over numpy.memmap", len(rows))


PEERS = {"numpy": _numpy, "torch": _torch}
