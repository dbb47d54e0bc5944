"""Mesh files -> vertices float32 [n, 3] and triangles int64 [m, 3], eight files per batch."""
import pathlib
import subprocess
import sys

from feeding import Peer, processes, threads

BATCH, WARM = 8, 200


def _trimesh_loader():
    import logging

    import trimesh

    logging.disable(logging.CRITICAL)

    def load(path):
        mesh = trimesh.load(path, force="mesh", process=False, skip_materials=True)
        return mesh.vertices, mesh.faces

    return "trimesh " + trimesh.__version__, load


def _assimp_loader():
    import importlib.metadata

    import assimp_py
    import numpy

    def load(path):
        vertices, faces, count = [], [], 0
        for mesh in assimp_py.import_file(path, assimp_py.Process_Triangulate).meshes:
            vertices.append(numpy.asarray(mesh.vertices, numpy.float32).reshape(-1, 3))
            faces.append(numpy.asarray(mesh.indices, numpy.int64).reshape(-1, 3) + count)
            count += len(vertices[-1])
        return numpy.concatenate(vertices), numpy.concatenate(faces)

    return "assimp_py " + importlib.metadata.version("assimp_py"), load


def _as_tensors(load):
    def tensors(path):
        import numpy
        import torch

        vertices, faces = load(path)
        return (torch.from_numpy(numpy.ascontiguousarray(vertices, dtype=numpy.float32)),
                torch.from_numpy(numpy.ascontiguousarray(faces, dtype=numpy.int64)))

    return tensors


def _in_processes(loader):
    def peer(files, workers):
        version, load = loader()
        return Peer(version, processes(files, _as_tensors(load), BATCH, workers, collate_fn=list), "DataLoader")

    return peer


def _in_threads(loader):
    def peer(files, workers):
        version, load = loader()
        load_batch = lambda paths: [load(path) for path in paths]
        return Peer(version, threads(files, load_batch, BATCH, workers), "threads")

    return peer


def readable(files):
    """The files that both libraries load with finite coordinates. Each library runs in its own process. If it crashes, it is started
    again with the next file."""
    for loader in ("_trimesh_loader", "_assimp_loader"):
        files = list(_readable_by(loader, files))
    return files


_TRY = """
import numpy, sys, peers_meshes
_, load = getattr(peers_meshes, sys.argv[1])()
for path in sys.stdin.read().splitlines():
    print("?" + path, flush=True)
    try:
        vertices, faces = load(path)
        good = len(vertices) > 0 and len(faces) > 0 and bool(numpy.isfinite(vertices).all())
    except BaseException:
        good = False
    print(("+" if good else "-") + path, flush=True)
"""


def _readable_by(loader, files):
    while files:
        lines = subprocess.run([sys.executable, "-c", _TRY, loader], input="\n".join(files), capture_output=True,
                               text=True, cwd=pathlib.Path(__file__).parent).stdout.splitlines()
        yield from (line[1:] for line in lines if line[0] == "+")
        files = files[sum(line[0] == "?" for line in lines):] if lines else []


PEERS = {"trimesh": _in_processes(_trimesh_loader), "assimp_threads": _in_threads(_assimp_loader)}
