"""Trains a mesh transformer with the trainer of meshgpt-pytorch and prints one JSON line for train.py. The meshes and their face
edges are in memory before the first step.

usage: trainer_mesh_transformer.py --folder MESHES --steps 10 --warm 3 --batch 2 --threads 2 --model JSON --autoencoder FILE
       trainer_mesh_transformer.py --make FILE --model JSON       writes an untrained autoencoder for both sides
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import warnings

from trainer_common import read_obj, train_timed

warnings.filterwarnings("ignore")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"folder": str, "steps": int, "warm": int, "batch": int, "threads": int, "autoencoder": str, "make": str}.items():
        parser.add_argument("--" + name, type=kind)
    parser.add_argument("--model", required=True)
    return parser.parse_args()


def build(model):
    from meshgpt_pytorch import MeshAutoencoder, MeshTransformer

    plain = dict(model)
    autoencoder = MeshAutoencoder(**{k: tuple(v) if isinstance(v, list) else v for k, v in plain.pop("autoencoder").items()})
    return autoencoder, lambda: MeshTransformer(autoencoder, **plain)


def main():
    args = arguments()
    if args.threads:
        os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    from meshgpt_pytorch import MeshTransformerTrainer
    from meshgpt_pytorch.data import derive_face_edges_from_faces

    torch.manual_seed(0)
    model = json.loads(args.model)
    autoencoder, transformer = build(model)
    if args.make:
        torch.save({"model": autoencoder.state_dict(), "config": json.dumps(model["autoencoder"]), "step": 0}, args.make)
        return
    torch.set_num_threads(args.threads)
    autoencoder.load_state_dict(torch.load(args.autoencoder)["model"])

    class Meshes(torch.utils.data.Dataset):
        data_kwargs = ["vertices", "faces", "face_edges"]

        def __init__(self):
            self.all = [tuple(map(torch.tensor, read_obj(path))) for path in sorted(pathlib.Path(args.folder).rglob("*.obj"))]
            self.all = [(v, f, derive_face_edges_from_faces(f)) for v, f in self.all]

        def __len__(self):
            return len(self.all)

        def __getitem__(self, index):
            return self.all[index]

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trainer = MeshTransformerTrainer(transformer(), dataset=Meshes(), num_train_steps=args.warm, batch_size=args.batch, grad_accum_every=1,
                                         checkpoint_folder=folder, accelerator_kwargs=dict(cpu=True))
        result = train_timed(trainer, args.warm, args.steps, "meshgpt-pytorch")
    print(json.dumps(result))


main()
