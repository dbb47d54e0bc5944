"""Shared by the measurements of the Python trainers: command line arguments and timers."""
import argparse
import time


def arguments(doc, **more):
    """The arguments of every trainer, and `more` (names and types)."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": str, "steps": int, "warm": int, "batch": int, "threads": int, "model": str, **more}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    return parser.parse_args()


class Clock:
    """Adds up the time of calls."""

    def __init__(self):
        self.seconds = 0.0

    def around(self, call):
        def timed(*args, **kwargs):
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
        return timed

    def iterator(self, inner):
        """Yields the same items and adds up the time that the consumer waits for them."""
        class Timed:
            __next__ = staticmethod(self.around(lambda: next(inner)))
        return Timed()


def read_obj(path):
    """Vertices and triangles of a plain OBJ file, as lists."""
    vertices, faces = [], []
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            vertices.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            faces.append([int(word.split("/")[0]) - 1 for word in words[1:4]])
    return vertices, faces


def train_timed(trainer, warm, steps, peer):
    """Runs a trainer of meshgpt-pytorch for `warm` steps, then measures `steps` more."""
    data, backward, optimizer = Clock(), Clock(), Clock()
    trainer.next_data_to_forward_kwargs = data.around(trainer.next_data_to_forward_kwargs)
    trainer.accelerator.backward = backward.around(trainer.accelerator.backward)
    trainer.optimizer.step = optimizer.around(trainer.optimizer.step)
    trainer()
    data.seconds = backward.seconds = optimizer.seconds = 0.0
    trainer.num_train_steps += steps
    start = time.perf_counter()
    trainer()
    seconds = time.perf_counter() - start
    return {"peer": peer, "steps_per_s": steps / seconds, "data_wait": data.seconds / seconds, "backward": backward.seconds / seconds,
            "optimizer": optimizer.seconds / seconds}
