"""What the trainers in Python share when they are measured: their arguments, and clocks around their calls."""
import argparse
import time


def arguments(doc, **more):
    """Those that every trainer has, and `more`: names and types."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": str, "steps": int, "warm": int, "batch": int, "threads": int, "model": str, **more}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    return parser.parse_args()


class Clock:
    """Adds up how long calls take."""

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
        """The same items; how long its consumer waits for them is added up."""
        class Timed:
            __next__ = staticmethod(self.around(lambda: next(inner)))
        return Timed()
