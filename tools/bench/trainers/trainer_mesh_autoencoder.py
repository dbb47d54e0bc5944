"""Trains MeshGPT's autoencoder with the trainer of meshgpt-pytorch and prints one JSON line for train.py.

usage: trainer_mesh_autoencoder.py --folder MESHES --steps 10 --warm 3 --batch 4 --threads 2 --model JSON

Meshes are OBJ files of triangles. They and their face edges are in memory before the measurement starts.
"""
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import warnings

from trainer_common import arguments, read_obj, train_timed

warnings.filterwarnings("ignore")


def main():
    args = arguments(__doc__)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    from meshgpt_pytorch import MeshAutoencoder, MeshAutoencoderTrainer
    from meshgpt_pytorch.data import derive_face_edges_from_faces

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    class Meshes(torch.utils.data.Dataset):
        data_kwargs = ["vertices", "faces", "face_edges"]

        def __init__(self):
            self.meshes = []
            for path in sorted(pathlib.Path(args.folder).glob("*.obj")):
                vertices, faces = map(torch.tensor, read_obj(path))
                vertices = vertices - (vertices.amax(0) + vertices.amin(0)) / 2
                self.meshes.append((vertices / vertices.abs().max(), faces, derive_face_edges_from_faces(faces)))

        def __len__(self):
            return len(self.meshes)

        def __getitem__(self, i):
            return self.meshes[i]

    model = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(args.model).items()}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trainer = MeshAutoencoderTrainer(MeshAutoencoder(**model), dataset=Meshes(), num_train_steps=args.warm, batch_size=args.batch,
                                         grad_accum_every=1, checkpoint_every=10**9, checkpoint_folder=folder, accelerator_kwargs=dict(cpu=True))
        result = train_timed(trainer, args.warm, args.steps, "meshgpt-pytorch")
    print(json.dumps(result))


main()
