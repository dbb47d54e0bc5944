"""Makes GIF files that are hard to get right, and what Pillow shows of them.

usage: make_gifs.py FOLDER
For each NAME.gif: NAME.raw, all frames as RGB, and a line "NAME width height frames delay,delay,..."
"""
import random
import struct
import sys

from PIL import Image, ImageSequence


def lzw(pixels, bits, clear_every=None):
    """GIF's LZW, with a clear code now and then if asked for."""
    clear, end = 1 << bits, (1 << bits) + 1
    codes = []  # (code, width)
    width, table, following = bits + 1, {bytes([i]): i for i in range(clear)}, end + 1
    codes.append((clear, width))
    text, since = b"", 0
    for p in pixels:
        grown = text + bytes([p])
        if grown in table:
            text = grown
            continue
        codes.append((table[text], width))
        since += 1
        if following < 4096:
            table[grown] = following
            if following == 1 << width:
                width += 1
            following += 1
        if following == 4096 or (clear_every and since >= clear_every):
            if not (following == 4096 and clear_every == 0):  # 0: never, the table stays full
                codes.append((clear, width))
                width, table, following = bits + 1, {bytes([i]): i for i in range(clear)}, end + 1
                since = 0
        text = bytes([p])
    codes.append((table[text], width))
    if following < 4096 and following == 1 << width:
        width += 1
    codes.append((end, width))
    word = used = 0
    out = bytearray()
    for code, w in codes:
        word |= code << used
        used += w
        while used >= 8:
            out.append(word & 255)
            word >>= 8
            used -= 8
    if used:
        out.append(word & 255)
    return bytes(out)


def blocks(data, size=255):
    out = bytearray()
    for i in range(0, len(data), size):
        part = data[i:i + size]
        out += bytes([len(part)]) + part
    return bytes(out) + b"\0"


def interlaced(rows):
    h = len(rows)
    order = [*range(0, h, 8), *range(4, h, 8), *range(2, h, 4), *range(1, h, 2)]
    return [rows[y] for y in order]


def palette(rng, bits):
    return bytes(rng.randrange(256) for _ in range(3 << bits))


def make(rng, width, height, count, *, disposals, transparency, local, interlace, partial, bits,
         background, global_palette=True, clear_every=None, block=255, first_larger=False):
    out = bytearray(b"GIF89a" + struct.pack("<HH", width, height))
    out += bytes([0xF0 | (bits - 1) if global_palette else 0x70, background, 0])
    if global_palette:
        out += palette(rng, bits)
    out += b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    for n in range(count):
        w, h, x, y = width, height, 0, 0
        if partial and (n > 0 or partial == "first too"):
            w, h = rng.randint(1, width), rng.randint(1, height)
            x, y = rng.randint(0, width - w), rng.randint(0, height - h)
        if first_larger and n == 0:
            w, h = width + 3, height + 2
        t = rng.randrange(1 << bits) if transparency and rng.random() < 0.8 else None
        d = rng.choice(disposals)
        if d is not None:
            out += b"!\xf9\x04" + bytes([d << 2 | (t is not None)])
            out += struct.pack("<HB", rng.choice([0, 1, 4, 10, 250]), t or 0) + b"\0"
        if rng.random() < 0.3:
            out += b"!\xfe" + blocks(b"a comment" * 40)
        own = local and (rng.random() < 0.6 or not global_palette)
        i = interlace and rng.random() < 0.7
        out += b"," + struct.pack("<HHHH", x, y, w, h) + bytes([(0x80 | (bits - 1) if own else 0) | (0x40 if i else 0)])
        if own:
            out += palette(rng, bits)
        # Runs and noise: both short and long strings.
        flat, value = [], 0
        while len(flat) < w * h:
            value = rng.randrange(1 << bits)
            flat += [value] * rng.choice([1, 1, 2, 3, 40])
        flat = flat[:w * h]
        if t is not None:
            flat = [t if rng.random() < 0.3 else v for v in flat]
        rows = [flat[r * w:(r + 1) * w] for r in range(h)]
        if i:
            rows = interlaced(rows)
        code_bits = max(2, bits)
        out += bytes([code_bits]) + blocks(lzw([v for r in rows for v in r], code_bits, clear_every), block)
    return bytes(out) + b";"


def natural(width, height, count):
    """Frames with gradients and motion, as Pillow itself writes them."""
    frames = []
    for n in range(count):
        im = Image.radial_gradient("L").resize((width, height)).rotate(7 * n)
        frames.append(Image.merge("RGB", (im, im.rotate(90), Image.linear_gradient("L").resize((width, height)).rotate(n * 20))))
    return frames


def main(folder):
    rng = random.Random(5)
    files = {}
    everything = dict(disposals=[0, 1, 2, 3], transparency=True, local=True, interlace=True, partial=True, bits=5, background=3)
    for d in (0, 1, 2, 3):
        for t in (False, True):
            for part in (True, "first too"):
                files[f"disposal{d}_transparent{int(t)}_{'first' if part != True else 'later'}"] = make(
                    rng, 31, 23, 7, **{**everything, "disposals": [d], "transparency": t, "partial": part})
    for k in range(24):
        files[f"mixed{k}"] = make(rng, rng.randint(1, 70), rng.randint(1, 50), 9, **{
            **everything, "partial": rng.choice([False, True, "first too"]), "bits": rng.randint(2, 8),
            "interlace": rng.random() < 0.5, "disposals": rng.choice([[0, 1, 2, 3], [1, 2], [1, 3], [0, 2, 3, None], [2, 4, 5, 7]])})
    files["two_colours"] = make(rng, 40, 30, 4, **{**everything, "bits": 1, "background": 1})
    files["no_global_palette"] = make(rng, 40, 30, 4, **{**everything, "global_palette": False})
    files["many_clear_codes"] = make(rng, 90, 70, 3, **{**everything, "bits": 8, "clear_every": 9})
    files["table_stays_full"] = make(rng, 200, 150, 2, **{**everything, "bits": 8, "clear_every": 0, "partial": False})
    files["blocks_of_one_byte"] = make(rng, 33, 9, 3, **{**everything, "block": 1})
    files["first_frame_larger_than_screen"] = make(rng, 20, 16, 1, **{**everything, "first_larger": True})
    files["single_frame"] = make(rng, 20, 16, 1, **everything)
    for name, data in files.items():
        open(f"{folder}/{name}.gif", "wb").write(data)
    frames = natural(64, 48, 12)
    for d in (0, 1, 2):
        name = f"pillow_disposal{d}"
        frames[0].save(f"{folder}/{name}.gif", save_all=True, append_images=frames[1:], duration=[40 + 10 * i for i in range(12)], loop=0, disposal=d)
        files[name] = b""
    with_alpha = [f.convert("RGBA") for f in frames]
    for f in with_alpha:
        f.putalpha(f.getchannel(0).point(lambda v: 255 if v > 90 else 0))
    with_alpha[0].save(f"{folder}/pillow_alpha.gif", save_all=True, append_images=with_alpha[1:], duration=30, loop=3, disposal=2)
    files["pillow_alpha"] = b""
    for name in files:
        im = Image.open(f"{folder}/{name}.gif")
        raw, delays = b"", []
        for f in ImageSequence.Iterator(im):
            delays.append(f.info.get("duration", 0))
            raw += f.convert("RGB").tobytes()
        open(f"{folder}/{name}.raw", "wb").write(raw)
        print(name, im.size[0], im.size[1], len(delays), ",".join(str(int(d)) for d in delays))


main(sys.argv[1])
