"""The three ways in which the peers are fed: torch's DataLoader, a pool of threads, or a pipeline of
their own. Each gives `epoch(n)`: batches of n items in all, every file equally often, in a new random
order for each pass."""
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
    items: int = 0  # in a pass, where they are not files


def shuffled(items, count):
    """`count` items: whole passes, each in an order of its own."""
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
    """Its length changes between epochs, so that workers persist from warm-up to measurement."""

    def __init__(self, files, batch_size):
        self.files, self.batch_size, self.count = files, batch_size, files

    def __iter__(self):
        return groups(range(self.files), self.batch_size, self.count)

    def __len__(self):
        return -(-self.count // self.batch_size)


def processes(files, load, batch_size, workers, **options):
    """torch's DataLoader with worker processes; `load` gives one item."""
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
    """A pool of threads, two batches each in flight; `load_batch` makes a batch of a list of paths."""
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
    """load_batch of load: items stacked into one tensor."""
    import torch

    return lambda paths: torch.stack([load(path) for path in paths])
