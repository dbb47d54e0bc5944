#!/usr/bin/env python3
"""Synthesizes sounds with captions for train_mulan: 00000.wav and 00000.txt ("a low sawtooth rising slowly, pulsing").

usage: sample_sounds.py FOLDER [--count 600] [--seconds 1] [--rate 16000] [--format wav|ogg|mp3|mixed] [--seed 1]

Every sound has a waveform, a pitch range, a pitch movement and an envelope, which the caption names. Sounds with the same caption
differ in pitch, loudness, timbre and noise. wav needs only numpy, the other formats need soundfile.
"""
import argparse
import pathlib
import wave

import numpy

HEIGHTS = {"low": (90, 180), "middle": (350, 600), "high": (1200, 2200)}  # Hz
# Change of pitch in octaves; the argument is the time from 0 to 1.
MOVEMENTS = {"held": lambda t: 0 * t, "rising slowly": lambda t: 0.5 * t, "rising fast": lambda t: 1.5 * t, "falling slowly": lambda t: -0.5 * t,
             "falling fast": lambda t: -1.5 * t, "wobbling": lambda t: 0.25 * numpy.sin(2 * numpy.pi * 6 * t)}
SHAPES = {"steady": lambda t: numpy.ones_like(t), "plucked": lambda t: numpy.exp(-6 * t), "swelling": lambda t: t ** 1.5,
          "pulsing": lambda t: (numpy.sin(2 * numpy.pi * 5 * t) > 0) * 0.95 + 0.05}


def sine(phase, rng):
    return numpy.sin(phase)


def square(phase, rng):
    return numpy.tanh(8 * numpy.sin(phase))


def sawtooth(phase, rng):
    return sum(numpy.sin(n * phase) / n for n in range(1, 9))


def chord(phase, rng):
    return numpy.sin(phase) + numpy.sin(phase * 5 / 4) + numpy.sin(phase * 3 / 2)


def bell(phase, rng):
    return numpy.sin(phase + 3 * numpy.sin(phase * 1.414))


def noise(phase, rng):
    """Band noise around the pitch."""
    slow = numpy.repeat(rng.standard_normal(len(phase) // 40 + 1), 40)[:len(phase)]
    return slow * numpy.sin(phase) + 0.1 * rng.standard_normal(len(phase))


def drum(phase, rng):
    """Drum beats, tuned to the pitch."""
    n = numpy.arange(len(phase))
    beat = (n % (len(phase) // 4)) / len(phase) * 4
    return numpy.exp(-9 * beat) * (numpy.sin(phase) + 0.4 * rng.standard_normal(len(phase)))


KINDS = {"sine": sine, "square wave": square, "sawtooth": sawtooth, "chord": chord, "bell": bell, "noise": noise, "drum": drum}


def sound(rng, kind, height, movement, shape, seconds, rate):
    time = numpy.arange(int(seconds * rate)) / rate
    low, high = HEIGHTS[height]
    pitch = numpy.exp(rng.uniform(numpy.log(low), numpy.log(high))) * 2 ** MOVEMENTS[movement](time / seconds)
    wave_form = KINDS[kind](2 * numpy.pi * numpy.cumsum(pitch) / rate + rng.uniform(0, 6), rng) * SHAPES[shape](time / seconds)
    wave_form = wave_form / numpy.abs(wave_form).max() * rng.uniform(0.3, 0.9)
    return wave_form + 0.003 * rng.standard_normal(len(time))


def write(path, samples, rate):
    if path.suffix != ".wav":
        import soundfile
        return soundfile.write(path, samples, rate)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1), out.setsampwidth(2), out.setframerate(rate)
        out.writeframes((numpy.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rate", type=int, default=16000)
    parser.add_argument("--format", choices=["wav", "ogg", "mp3", "mixed"], default="wav")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for number in range(args.count):
        rng = numpy.random.default_rng([args.seed, number])
        of = [str(rng.choice(list(choices))) for choices in (KINDS, HEIGHTS, MOVEMENTS, SHAPES)]
        ending = ["wav", "ogg", "mp3"][number % 3] if args.format == "mixed" else args.format
        write(args.folder / f"{number:05}.{ending}", sound(rng, *of, args.seconds, args.rate), args.rate)
        kind, height, movement, shape = of
        (args.folder / f"{number:05}.txt").write_text(f"a {height} {kind} {movement}, {shape}\n")
    print(f"{args.count} sounds of {args.seconds} s with captions in {args.folder}")


main()
