"""Makes images named for what is hard about them, and what Pillow shows of each.

usage: make_images.py KIND FOLDER    KIND: png, jpeg, webp, gif or other

For each file NAME it also writes NAME.rgb, NAME.rgba and NAME.l, the raw pixels of Pillow's
convert() where that is the reference, and prints one line: NAME width height.
"""
import os, struct, sys, zlib
import numpy as np
from PIL import Image, ImageOps

kind, folder = sys.argv[1:3]
rng = np.random.default_rng(4)


def photo(width, height, channels=3):
    """Smooth shapes with edges and some noise: what codecs are made for."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 80 * np.sin(x / (5 + 3 * c) + c) + 40 * ((x // 7 + y // (5 + c)) % 2) for c in range(channels)]
    noisy = np.stack(planes, -1) + rng.normal(0, 6, (height, width, channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def put(name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def expect(name, image=None, rgb=None, kinds=("rgb", "rgba", "l")):
    image = image if image is not None else Image.open(os.path.join(folder, name))
    if rgb is not None:
        image = Image.fromarray(rgb)
    print(name, image.width, image.height)
    for suffix in kinds:
        source = image.convert("RGB") if suffix == "l" else image
        put(name + "." + suffix, source.convert(suffix.upper()).tobytes())

def near(name, image):
    """What has no exact reference: NAME.near is to be met within a few levels."""
    print(name, image.width, image.height)
    put(name + ".near", image.convert("RGB").tobytes())


#PNG, written by hand because Pillow writes neither interlaced files nor 16 - bit colour.

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pack_row(row, bits):
    """One row of samples to bytes."""
    if bits == 16:
        return row.astype(">u2").tobytes()
    if bits == 8:
        return row.astype(np.uint8).tobytes()
    spread = (row.astype(np.uint8)[:, None] >> np.arange(bits - 1, -1, -1)) & 1
    return np.packbits(spread.ravel().astype(np.uint8)).tobytes()


def filter_row(row, above, kind, step):
    row = np.frombuffer(row, np.uint8).astype(int)
    above = np.frombuffer(above, np.uint8).astype(int)
    left = np.concatenate([np.zeros(step, int), row])[: len(row)]
    corner = np.concatenate([np.zeros(step, int), above])[: len(row)]
    if kind == 4:
        p = left + above - corner
        pa, pb, pc = abs(p - left), abs(p - above), abs(p - corner)
        predicted = np.where((pa <= pb) & (pa <= pc), left, np.where(pb <= pc, above, corner))
    else:
        predicted = [0, left, above, (left + above) // 2][kind]
    return bytes([kind]) + ((row - predicted) % 256).astype(np.uint8).tobytes()


def png_pixels(samples, bits, interlaced):
    height, width, channels = samples.shape
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    out, step = b"", max(1, channels * bits // 8)
    for x0, y0, dx, dy in passes:
        part = samples[y0::dy, x0::dx]
        if part.size == 0:
            continue
        above = None
        for number, row in enumerate(part):
            packed = pack_row(row.ravel(), bits)
            above = above if above is not None else bytes(len(packed))
            out += filter_row(packed, above, number % 5, step)
            above = packed
    return zlib.compress(out)


def png(name, samples, colour, bits, interlaced, extra=()):
    height, width = samples.shape[:2]
    body = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))
    for kind_, data in extra:
        body += chunk(kind_, data)
    put(name, body + chunk(b"IDAT", png_pixels(samples, bits, interlaced)) + chunk(b"IEND", b""))


def make_png():
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    depths = {
  0 : (1, 2, 4, 8, 16), 2 : (8, 16), 3 : (1, 2, 4, 8), 4 : (8, 16), 6 : (8, 16)}
    for colour, all_bits in depths.items():
        for bits in all_bits:
            for interlaced in (0, 1):
                for width, height in ((37, 29), (1, 1), (5, 3)):
                    for transparent in (False, True) if colour in (0, 2, 3) else (False,):
                        samples = rng.integers(0, 1 << bits, (height, width, channels[colour]))
                        extra = []
                        if colour == 3:
                            extra.append((b"PLTE", rng.integers(0, 256, 3 << bits).astype(np.uint8).tobytes()))
                        if transparent:
                            key = samples[0, 0].astype(">u2").tobytes()
                            table = rng.integers(0, 256, 1 << bits).astype(np.uint8).tobytes()
                            extra.append((b"tRNS", table if colour == 3 else key))
                        name = f"colour{colour}_bits{bits}_{'adam7' if interlaced else 'plain'}_{width}x{height}{'_transparent' if transparent else ''}.png"
                        png(name, samples, colour, bits, interlaced, extra)
                        if colour == 0 and bits == 16:  # Pillow clips these to white: the upper byte is right
                            expect(name, rgb=np.repeat((samples >> 8).astype(np.uint8), 3, 2), kinds=("rgb", "l"))
                        else:
                            expect(name, kinds=("rgb", "l") if transparent and colour != 3 else ("rgb", "rgba", "l"))
                        if transparent and colour != 3:  # Pillow compares the key with pixels already made 8-bit
                            rgb = np.frombuffer(open(os.path.join(folder, name + ".rgb"), "rb").read(), np.uint8)
                            alpha = np.where((samples == samples[0, 0]).all(2), 0, 255).astype(np.uint8)
                            put(name + ".rgba", np.dstack([rgb.reshape(height, width, 3), alpha]).tobytes())
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        name = f"turned_{orientation}.png"
        Image.fromarray(photo(23, 14)).save(os.path.join(folder, name), exif=exif)
        expect(name, ImageOps.exif_transpose(Image.open(os.path.join(folder, name))))


def make_jpeg():
    def save(name, image, **options):
        image.save(os.path.join(folder, name), "JPEG", **options)
        shown = ImageOps.exif_transpose(Image.open(os.path.join(folder, name)))
        expect(name, shown, kinds=("rgb", "l") if image.mode == "CMYK" else ("rgb", "rgba", "l"))

    for width, height in ((97, 61), (16, 16), (1, 1), (3, 200), (250, 9)):
        colour, grey = Image.fromarray(photo(width, height)), Image.fromarray(photo(width, height, 1)[..., 0])
        for progressive in (False, True):
            tag = f"{width}x{height}{'_progressive' if progressive else ''}.jpg"
            for subsampling in (0, 1, 2, "4:1:1"):
                label = str(subsampling).replace(":", "")
                save(f"sampling{label}_{tag}", colour, subsampling=subsampling, progressive=progressive, quality=83)
            save(f"grey_{tag}", grey, progressive=progressive)
            save(f"cmyk_{tag}", Image.fromarray(photo(width, height, 4), "CMYK"), progressive=progressive)
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        save(f"turned_{orientation}.jpg", Image.fromarray(photo(53, 38)), exif=exif)
#Files that the test wrote itself, with what Pillow cannot write.
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".jpeg")):
        expect(name, kinds=("rgb",))


def make_webp():
    for width, height in ((61, 43), (1, 1), (128, 17)):
        for channels in (3, 4):
            for lossless in (False, True):
                name = f"channels{channels}_{'lossless' if lossless else 'lossy'}_{width}x{height}.webp"
                image = Image.fromarray(photo(width, height, channels))
                image.save(os.path.join(folder, name), lossless=lossless, exact=True, quality=70)
                expect(name)
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        name = f"turned_{orientation}.webp"
        Image.fromarray(photo(23, 14)).save(os.path.join(folder, name), exif=exif, lossless=True)
        expect(name, ImageOps.exif_transpose(Image.open(os.path.join(folder, name))))
    frames = [Image.fromarray(photo(40, 30, 4)) for _ in range(3)]
    frames[0].save(os.path.join(folder, "animated.webp"), save_all=True, append_images=frames[1:], duration=50, lossless=True)
    expect("animated.webp")


def gif(name, screen, frame, indexes, palette, transparent=None, local=False, bits=4, interlaced=False):
    """A GIF of one frame with uncompressed codes: a clear code often enough keeps them 1 bit wider."""
    flags = 0x80 | (bits - 1)
    out = b"GIF89a" + struct.pack("<HHBBB", *screen, flags if not local else 0, 0, 0) + (b"" if local else palette)
    if transparent is not None:
        out += b"\x21\xf9\x04" + struct.pack("<BHB", 1, 0, transparent) + b"\0"
    out += b"\x2c" + struct.pack("<HHHHB", *frame, (flags if local else 0) | (0x40 if interlaced else 0)) + (palette if local else b"")
    bits_out, clear = [], 1 << bits
    for i, index in enumerate(indexes):
        if i % (clear - 2) == 0:
            bits_out.append(clear)
        bits_out.append(index)
    bits_out.append(clear + 1)
    number = sum(code << (i * (bits + 1)) for i, code in enumerate(bits_out))
    data = number.to_bytes((len(bits_out) * (bits + 1) + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255))
    put(name, out + bytes([bits]) + blocks + b"\0\x3b")
    expect(name)


def make_gif():
    palette = rng.integers(0, 256, 48).astype(np.uint8).tobytes()
    indexes = [int(i) for i in rng.integers(0, 16, 20 * 11)]
    gif("whole_screen.gif", (20, 11), (0, 0, 20, 11), indexes, palette)
    gif("local_palette.gif", (20, 11), (0, 0, 20, 11), indexes, palette, local=True)
    gif("transparent.gif", (20, 11), (0, 0, 20, 11), indexes, palette, transparent=5)
    gif("interlaced.gif", (20, 11), (0, 0, 20, 11), indexes, palette, interlaced=True)
    gif("frame_inside_screen.gif", (30, 21), (4, 6, 20, 11), indexes, palette)
    gif("frame_inside_screen_transparent.gif", (30, 21), (4, 6, 20, 11), indexes, palette, transparent=3)
    gif("frame_exceeds_screen.gif", (10, 8), (4, 3, 20, 11), indexes, palette)
    for colours in (2, 7, 256):
        name = f"compressed_{colours}_colours.gif"
        Image.fromarray(photo(90, 70)).quantize(colours).save(os.path.join(folder, name))
        expect(name)
    Image.fromarray(photo(64, 48, 1)[..., 0]).save(os.path.join(folder, "grey.gif"))
    expect("grey.gif")


def tiff(name, pixels, fields):
    """Uncompressed, with fields that Pillow does not write; in one strip, or in one tile."""
    height, width, channels = pixels.shape
    where = (324, 325) if 322 in fields else (273, 279)
    fields = {256: width, 257: height, 259: 1, 262: 2, 277: channels, where[0]: 8, where[1]: pixels.size, **fields}
    bits_at = 8 + pixels.size
    entries = {tag: struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields.items()}
    entries[258] = struct.pack("<HHII", 258, 3, channels, bits_at)
    directory = struct.pack("<H", len(entries)) + b"".join(entries[tag] for tag in sorted(entries)) + bytes(4)
    bits = struct.pack("<H", 8) * channels
    put(name, b"II*\0" + struct.pack("<I", bits_at + len(bits)) + pixels.tobytes() + bits + directory)


def make_other():
    def save(name, image, kinds=("rgb", "rgba", "l"), **options):
        image.save(os.path.join(folder, name), **options)
        expect(name, kinds=kinds)

    colour, grey = Image.fromarray(photo(45, 31)), Image.fromarray(photo(45, 31, 1)[..., 0])
    alpha, palette = Image.fromarray(photo(45, 31, 4)), Image.fromarray(photo(45, 31)).quantize(200)
    for extension in ("bmp", "tiff", "ppm", "tga"):
        save(f"colour.{extension}", colour)
        save(f"grey.{extension}", grey)
    for extension in ("bmp", "tiff"):
        save(f"palette.{extension}", palette)
        save(f"bilevel.{extension}", grey.convert("1"))
    for extension in ("tiff", "tga"):
        save(f"alpha.{extension}", alpha)
    pixels = photo(45, 31, 4)
    pixels[..., :3] = pixels[..., :3].astype(int) * pixels[..., 3:] // 255
    tiff("premultiplied.tiff", pixels, {338: 1})
    expect("premultiplied.tiff")
    tiff("tiled.tiff", pixels[:16, :16], {322: 16, 323: 16})
    save("bilevel.pbm", grey.convert("1"))
    save("lzw.tiff", colour, compression="tiff_lzw")
    save("deflate.tiff", colour, compression="tiff_adobe_deflate")
    save("packbits.tiff", colour, compression="packbits")
    # Nothing but a tag says which values black and white have; without it they are 0 and 255. The
    # colours of Pillow's YCbCr are libtiff's to within rounding, so these are flat ones.
    flat = np.kron(rng.integers(0, 256, (3, 5, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    Image.fromarray(flat).convert("YCbCr").save(os.path.join(folder, "full_range.tiff"))
    near("full_range.tiff", Image.fromarray(flat))
    # The fourth byte of a pixel is padding here, whatever it holds.
    padded = photo(9, 6, 4)[:, :, ::-1].tobytes()
    put("padded.bmp", b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + len(padded), 0, 0, 54, 40, 9, 6, 1, 32, 0, 0, 0, 0, 0, 0) + padded)
    expect("padded.bmp")
    put("top_down.bmp", b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + len(padded), 0, 0, 54, 40, 9, -6, 1, 32, 0, 0, 0, 0, 0, 0) + padded)
    expect("top_down.bmp")
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        colour.save(os.path.join(folder, f"turned_{orientation}.tiff"), exif=exif)
        expect(f"turned_{orientation}.tiff", ImageOps.exif_transpose(Image.open(os.path.join(folder, f"turned_{orientation}.tiff"))))
    wide = rng.integers(0, 65536, (31, 45)).astype(np.uint16)
    Image.fromarray(wide).save(os.path.join(folder, "grey16.tiff"))
    expect("grey16.tiff", rgb=np.repeat((wide >> 8).astype(np.uint8)[..., None], 3, 2), kinds=("rgb", "l"))


{"png": make_png, "jpeg": make_jpeg, "webp": make_webp, "gif": make_gif, "other": make_other}[kind]()
