"""The three ways to run a peer: torch's DataLoader, a thread pool, or the peer's own pipeline. Each
provides `epoch(n)`: batches with n items in total, every file equally often, in a new random order
for each pass."""
import collections
import dataclasses
import random
import typing
from concurrent.futures import ThreadPoolExecutor


@dataclasses.dataclass
class Peer:
    version: str
    epoch: typing.Callable  # number of items -> iterable of batches
    note: str = ""
    items: int = 0  # number of items per pass, if items are not files


def shuffled(items, count):
    """`count` items: full passes, each in a new random order."""
    while count > 0:
        order = list(items)
        random.shuffle(order)
        yield from order[:count]
        count -= len(order)


def groups(items, size, count):
    group = []
    for item in shuffled(items, count):
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


class _Files:
    def __init__(self, files, load):
        self.files, self.load = files, load

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.load(self.files[index])


class _BatchSampler:
    """A sampler whose length may change between epochs, so that workers persist from warm-up to measurement."""

    def __init__(self, files, batch_size):
        self.files, self.batch_size, self.count = files, batch_size, files

    def __iter__(self):
        return groups(range(self.files), self.batch_size, self.count)

    def __len__(self):
        return -(-self.count // self.batch_size)


def processes(files, load, batch_size, workers, **options):
    """torch's DataLoader with worker processes; `load` returns one item."""
    import torch

    torch.multiprocessing.set_sharing_strategy("file_system")
    sampler = _BatchSampler(len(files), batch_size)
    loader = torch.utils.data.DataLoader(_Files(files, load), batch_sampler=sampler, num_workers=workers,
                                         persistent_workers=workers > 0, **options)

    def epoch(count):
        sampler.count = count
        return iter(loader)

    return epoch


def threads(files, load_batch, batch_size, workers):
    """A thread pool with two batches per thread in flight; `load_batch` turns a list of paths into a batch."""
    pool = ThreadPoolExecutor(workers)

    def epoch(count):
        flight = collections.deque()
        for group in groups(files, batch_size, count):
            flight.append(pool.submit(load_batch, group))
            if len(flight) >= 2 * workers:
                yield flight.popleft().result()
        while flight:
            yield flight.popleft().result()

    return epoch


def stacked(load):
    """Makes a `load_batch` from `load`: items are stacked into one tensor."""
    import torch

    return lambda paths: torch.stack([load(path) for path in paths])
