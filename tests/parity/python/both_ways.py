"""Shared by the scripts that train with Millrace and with the Python package and load each other's files."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch


def relative(a, b):
    return ((a - b).norm() / b.norm()).item()


class Check:
    def __init__(self, folder):
        self.folder, self.failed = folder, 0

    def __call__(self, what, error, limit=1e-5):
        self.failed += not error <= limit
        print(f"  {'ok  ' if error <= limit else 'FAIL'} {what}: {error:.2e} (limit {limit:.0e})", flush=True)

    def by_ours(self, program, weights, config, img):
        torch.save({"config": json.dumps(config), "img": img}, self.folder / "input.pt")
        subprocess.run([program, weights, self.folder / "input.pt", self.folder / "output.pt"], check=True)
        return torch.load(self.folder / "output.pt", weights_only=True)["recon"]


def main(doc, write_fixture, compare):
    """--fixture FOLDER calls write_fixture(folder). --bin FOLDER (with Millrace's programs) calls compare(check, bin, empty_folder)."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--fixture", type=pathlib.Path)
    args = parser.parse_args()
    if args.fixture:
        write_fixture(args.fixture)
    if not args.bin:
        return
    with tempfile.TemporaryDirectory() as folder:
        check = Check(pathlib.Path(folder))
        compare(check, args.bin.resolve(), check.folder)
    sys.exit(f"{check.failed} failed" if check.failed else 0)
