"""Training killed with -9 at random moments and resumed: every logged loss, every picture and all weights equal those of
an uninterrupted run, bit for bit. usage: train_killed.py [PROGRAM [STEPS [KILLS [SEED [FLAG...]]]]]; PROGRAM is one of
those below, FLAGs are passed to it"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from faults import make_clips, make_images, make_meshes, make_sounds, temporary



def make_captioned_clips(folder, count):
    """With a text beside each, and beside the folder a VAE to see them through."""
    make_clips(folder, count)
    for i, clip in enumerate(sorted(folder.glob("*.gif"))):
        clip.with_suffix(".txt").write_text("clip " + "x" * (i % 4))
    vae = folder.parent / "vae"
    subprocess.run([os.environ.get("TRAIN_NUWA_VAE", "train_nuwa_vae"), str(folder), "--results-folder", str(vae), "--num-train-steps", "1", "--batch-size", "4",
                    "--image-size", "8", "--channels", "1", "--dim", "4", "--resnet-groups", "2", "--num-layers", "1", "--use-attn", "false",
                    "--vq-codebook-size", "16", "--vq-codebook-dim", "8", "--use-vgg-and-gan", "false", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder


def make_encoded_meshes(folder, count):
    """With a text beside each, and beside the folder the autoencoder that encodes them."""
    make_meshes(folder, count)
    for i, mesh in enumerate(sorted(folder.glob("*.obj"))):
        mesh.with_suffix(".txt").write_text("mesh " + "x" * (i % 4))
    results = str(folder.parent / "autoencoder")
    subprocess.run([os.environ.get("TRAIN_MESH_AUTOENCODER", "train_mesh_autoencoder"), str(folder), "--results-folder", results, "--checkpoint-folder", results,
                    "--num-train-steps", "1", "--batch-size", "4", "--num-discrete-coors", "16", "--dim-coor-embed", "4", "--encoder-dims-through-depth", "8",
                    "--decoder-dims-through-depth", "8", "--dim-codebook", "8", "--codebook-size", "16", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder


TRAINERS = {
    "train_mulan": (make_sounds, [
        "--data-max-length", "500", "--audio-dim", "8", "--audio-depth", "2", "--audio-heads", "2", "--audio-dim-head", "4", "--audio-attn-dropout",
        "0.1", "--patch-size", "8", "--spec-n-fft", "32", "--spec-aug-freq-mask", "6", "--text-dim", "8", "--text-depth", "1", "--text-heads", "2",
        "--text-dim-head", "4", "--text-ff-dropout", "0.1", "--dim-latent", "6", "--save-results-every", "7", "--save-model-every", "9",
        "--checkpoint-every", "5", "--schedule", "cosine", "--use-lion"]),
    "train_vqgan": (make_images, [
        "--dim", "16", "--layers", "2", "--discr-layers", "1", "--codebook-size", "64", "--image-size", "16",
        "--save-results-every", "7", "--save-model-every", "9", "--checkpoint-every", "5", "--schedule", "cosine"]),
    "train_video_tokenizer": (make_clips, [
        "--image-size", "8", "--num-frames", "5", "--codebook-size", "16", "--init-dim", "4", "--input-conv-kernel-size", "3",
        "--layers", "compress_space:6,residual,compress_time,attend_time", "--attn-dim-head", "4", "--attn-heads", "2",
        "--attn-dropout", "0.1", "--discr-dim", "1", "--discr-max-dim", "4", "--multiscale-scales", "2", "--multiscale-dim", "1",
        "--multiscale-max-dim", "4", "--discr-start-after-step", "4", "--learning-rate", "1e-3", "--ema-update-after-step", "2",
        "--ema-update-every", "3", "--validate-every-step", "7", "--checkpoint-every-step", "5", "--scheduler", "cosine",
        "--activation-checkpointing"]),
    "train_mesh_autoencoder": (make_meshes, [
        "--num-discrete-coors", "16", "--dim-coor-embed", "4", "--encoder-dims-through-depth", "8", "--decoder-dims-through-depth", "8,6",
        "--dim-codebook", "8", "--codebook-size", "12", "--use-residual-lfq", "false", "--num-quantizers", "3", "--attn-decoder-depth", "1",
        "--local-attn-dim-head", "4", "--attn-dropout", "0.1", "--resnet-dropout", "0.1", "--weight-decay", "0.01", "--faces-at-once", "20",
        "--learning-rate", "1e-3", "--ema-update-after-step", "2", "--ema-update-every", "3", "--val-every", "7", "--checkpoint-every", "5",
        "--augment-jitter", "0.01", "--scheduler", "cosine"]),
    "train_mesh_transformer": (make_encoded_meshes, [
        "--dim", "12", "--max-seq-len", "120", "--attn-depth", "1", "--attn-dim-head", "4", "--attn-heads", "2", "--fine-attn-depth", "1",
        "--dropout", "0.1", "--weight-decay", "0.01", "--learning-rate", "1e-3", "--condition-on-text", "true", "--text-encoder-depth", "1",
        "--sample-every", "7", "--sample-max-faces", "3", "--val-every", "7", "--checkpoint-every", "5", "--augment-jitter", "0.01",
        "--scheduler", "cosine"]),
    "train_nuwa_vae": (make_clips, [
        "--image-size", "8", "--dim", "16", "--num-layers", "1", "--attn-dim-head", "4", "--attn-heads", "2", "--vq-codebook-size", "16",
        "--vq-codebook-dim", "8", "--vq-threshold-ema-dead-code", "1", "--ema-update-after-step", "2", "--ema-update-every", "3",
        "--save-results-every", "7", "--save-model-every", "9", "--checkpoint-every", "5", "--weight-decay", "0.01"]),
    "train_nuwa": (make_captioned_clips, [
        "--dim", "12", "--max-video-frames", "3", "--text-max-seq-len", "8", "--text-enc-depth", "1", "--text-enc-heads", "2",
        "--text-enc-dim-head", "4", "--dec-depth", "1", "--dec-heads", "2", "--dec-dim-head", "4", "--attn-dropout", "0.1",
        "--dec-reversible", "true", "--save-results-every", "7", "--save-model-every", "9", "--checkpoint-every", "5"]),
}
FOLDERS = {"train_video_tokenizer": "--checkpoints-folder", "train_mesh_autoencoder": "--checkpoint-folder",
           "train_mesh_transformer": "--checkpoint-folder"}
TRAINER = sys.argv[1] if len(sys.argv) > 1 else "train_vqgan"
TRAIN = os.environ.get(TRAINER.upper(), TRAINER)


def command(media, results, steps, *more):
    folders = [FOLDERS[TRAINER], str(results)] if TRAINER in FOLDERS else []
    if TRAINER == "train_nuwa":
        folders = ["--vae", str(media.parent / "vae" / "checkpoint.1.pt")]
    if TRAINER == "train_mesh_transformer":
        folders += ["--autoencoder", str(media.parent / "autoencoder" / "mesh-autoencoder.ckpt.1.pt")]
    return [TRAIN, str(media), "--results-folder", str(results), *folders, "--num-train-steps", str(steps), "--batch-size", "3",
            *TRAINERS[TRAINER][1], "--valid-frac", "0.2", "--grad-accum-every", "2", "--warmup-steps", "3",
            "--max-grad-norm", "1", "--threads", "1", "--workers", "2", "--quiet", *sys.argv[5:], *more]


def steps_logged(results):
    """How many steps the log holds."""
    path = results / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return max((json.loads(line)["step"] + 1 for line in lines if line.endswith("}")), default=0)


def kill_at(step, moment, run, results):
    """Kills the run once `step` steps are logged, `moment` seconds later. Whether it still ran."""
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and steps_logged(results) < step:
        time.sleep(0.001)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    if process.returncode not in (0, -signal.SIGKILL):
        sys.exit(f"the run failed: {said}")
    return process.returncode != 0


def outcome(results):
    """What must be the same: the log, and all pictures and weights."""
    kept = {p.name: p.read_bytes() for p in sorted(results.iterdir()) if p.suffix in (".gif", ".obj", ".png", ".pt", ".txt")}
    return {"metrics.jsonl": (results / "metrics.jsonl").read_bytes(), **kept}


def main():
    steps, kills = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 24), (3, 2)))
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else time.time_ns() % 100000
    chance = random.Random(seed)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        media = TRAINERS[TRAINER][0](folder / "media", 17)
        straight, broken = folder / "straight", folder / "broken"
        started = time.time()
        subprocess.run(command(media, straight, steps), check=True, stdout=subprocess.DEVNULL)
        per_step = (time.time() - started) / steps
        killed = []
        for step in sorted(chance.sample(range(1, steps), kills)):
            if kill_at(step, chance.uniform(0, 2 * per_step), command(media, broken, steps, "--resume"), broken):
                killed.append(steps_logged(broken))
        subprocess.run(command(media, broken, steps, "--resume"), check=True, stdout=subprocess.DEVNULL)
        expected, found = outcome(straight), outcome(broken)
        differing = [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)]
        if differing:
            sys.exit(f"seed {seed}: killed after {killed} steps, these differ: {differing}")
        leftovers = [p.name for p in broken.iterdir() if p.name.endswith(".tmp")]
        if leftovers:
            sys.exit(f"seed {seed}: left over: {leftovers}")
        print(f"{TRAINER}: {steps} steps, killed with {killed} steps logged: {len(expected)} files are the same, seed {seed}")


main()
