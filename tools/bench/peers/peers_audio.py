"""Audio files -> float32 [32, 48000]: a random window of 2 s, 24 kHz, mono."""
import random

from feeding import Peer, processes, stacked, threads

BATCH, RATE, SECONDS, WARM = 32, 24000, 2.0, 400
LENGTH = int(RATE * SECONDS)


def fitted(wave):
    import torch

    wave = wave[:LENGTH]
    return torch.nn.functional.pad(wave, (0, LENGTH - wave.shape[0])).contiguous()


def _soundfile_loader():
    import numpy
    import soundfile
    import soxr
    import torch

    def load(path):
        with soundfile.SoundFile(path) as file:
            count = int(SECONDS * file.samplerate) + 1
            file.seek(random.randint(0, max(0, file.frames - count)))
            wave = file.read(count, dtype="float32", always_2d=True).mean(1)
            wave = soxr.resample(wave, file.samplerate, RATE, "HQ")
        return fitted(torch.from_numpy(numpy.ascontiguousarray(wave)))

    return f"soundfile {soundfile.__version__} + soxr {soxr.__version__}", load


def soundfile(files, workers):
    version, load = _soundfile_loader()
    return Peer(version, processes(files, load, BATCH, workers), "seek, then soxr HQ")


def soundfile_threads(files, workers):
    version, load = _soundfile_loader()
    return Peer(version, threads(files, stacked(load), BATCH, workers), "threads; seek, then soxr HQ")


def librosa(files, workers):
    import librosa
    import torch

    def load(path):
        start = random.uniform(0, max(0.0, librosa.get_duration(path=path) - SECONDS))
        wave, _ = librosa.load(path, sr=RATE, mono=True, offset=start, duration=SECONDS)
        return fitted(torch.from_numpy(wave))

    return Peer("librosa " + librosa.__version__, processes(files, load, BATCH, workers), "load(offset, duration)")


def torchaudio(files, workers):
    import torchaudio
    from torchaudio.functional import resample

    def load(path):
        wave, rate = torchaudio.load(path)
        count = int(SECONDS * rate) + 1
        start = random.randint(0, max(0, wave.shape[1] - count))
        return fitted(resample(wave[:, start:start + count].mean(0), rate, RATE))

    return Peer("torchaudio " + torchaudio.__version__, processes(files, load, BATCH, workers), "the plain way: whole file")


def torchcodec(files, workers):
    import torchcodec
    from torchcodec.decoders import AudioDecoder

    def load(path):
        decoder = AudioDecoder(path, sample_rate=RATE, num_channels=1)
        length = decoder.metadata.duration_seconds_from_header or SECONDS
        start = random.uniform(0, max(0.0, length - SECONDS - 0.01))
        return fitted(decoder.get_samples_played_in_range(start, start + SECONDS).data[0])

    return Peer("torchcodec " + torchcodec.__version__, threads(files, stacked(load), BATCH, workers), "threads")


def readable(files):
    """The files that both libsndfile and FFmpeg decode completely."""
    import av
    import soundfile

    av.logging.set_level(av.logging.PANIC)
    for path in files:
        if not path.lower().endswith((".wav", ".flac", ".ogg")):
            continue
        try:
            with soundfile.SoundFile(path) as file:
                whole = file.frames == len(file.read()) > 1.9 * file.samplerate
            with av.open(path) as container:
                whole = whole and sum(frame.samples for frame in container.decode(audio=0)) > 1000
        except (av.FFmpegError, soundfile.LibsndfileError, IndexError):
            continue
        if whole:
            yield path


PEERS = {"soundfile": soundfile, "soundfile_threads": soundfile_threads, "librosa": librosa,
         "torchaudio": torchaudio, "torchcodec": torchcodec}
