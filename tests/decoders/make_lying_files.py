"""Makes small files that claim SIDE x SIDE pixels, or as many as their format can:
make_lying_files.py FOLDER SIDE

Each starts as an honest picture or clip of a few pixels, written by Pillow or ffmpeg; then the size
in its header is overwritten. Prints one line per file: its name and "image", "video" or "gif".
"""
import pathlib
import struct
import subprocess
import sys

from PIL import Image

OUT = pathlib.Path(sys.argv[1])
SIDE = int(sys.argv[2])


def put(name, kind, data):
    (OUT / name).write_bytes(data)
    print(name, kind)


def ffmpeg(name, *arguments, size=16):
    path = OUT / name
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", f"color=red:s={size}x{size}:r=4:d=0.5",
               "-threads", "1", *arguments, "-fflags", "+bitexact", "-flags", "+bitexact", str(path)]
    subprocess.run(command, check=True)
    data = path.read_bytes()
    path.unlink()
    return bytearray(data)


def pillow(form, **options):
    path = OUT / ("made." + form.lower())
    Image.new("RGB", (16, 16), (200, 30, 30)).save(path, form, **options)
    data = path.read_bytes()
    path.unlink()
    return bytearray(data)


def patch(data, *fields):
    """fields: (offset, struct format, value)"""
    for offset, form, value in fields:
        struct.pack_into(form, data, offset, value)
    return bytes(data)


def pictures():
    png = pillow("PNG")
    put("a.png", "image", patch(png, (16, ">I", SIDE), (20, ">I", SIDE)))
    jpeg = pillow("JPEG")
    at = jpeg.find(b"\xff\xc0")
    put("a.jpg", "image", patch(jpeg, (at + 5, ">H", SIDE), (at + 7, ">H", SIDE)))
    progressive = pillow("JPEG", progressive=True)
    at = progressive.find(b"\xff\xc2")
    put("progressive.jpg", "image", patch(progressive, (at + 5, ">H", SIDE), (at + 7, ">H", SIDE)))
    lossy = pillow("WEBP")
    canvas = struct.pack("<I", SIDE - 1)[:3]
    put("canvas.webp", "image", b"RIFF" + struct.pack("<I", len(lossy) + 10) + b"WEBPVP8X" + struct.pack("<II", 10, 0)
        + canvas * 2 + bytes(lossy[12:]))
    put("lossy.webp", "image", patch(lossy, (26, "<H", min(SIDE, 16383)), (28, "<H", min(SIDE, 16383))))
    lossless = pillow("WEBP", lossless=True)
    put("lossless.webp", "image", patch(lossless, (21, "<I", 0x0FFFFFFF)))
    gif = pillow("GIF")
    at = gif.rfind(b",\0\0\0\0")
    lie = patch(gif, (6, "<H", SIDE), (8, "<H", SIDE), (at + 5, "<H", SIDE), (at + 7, "<H", SIDE))
    put("a.gif", "image", lie)
    put("clip.gif", "gif", lie)


def libav_pictures():
    put("a.bmp", "image", patch(pillow("BMP"), (18, "<I", SIDE), (22, "<I", SIDE)))
    put("a.tga", "image", patch(pillow("TGA"), (12, "<H", SIDE), (14, "<H", SIDE)))
    put("a.ppm", "image", b"P6 %d %d 255\n" % (SIDE, SIDE) + bytes(900))
    tiff = pillow("TIFF")
    first = struct.unpack_from("<I", tiff, 4)[0]
    for i in range(struct.unpack_from("<H", tiff, first)[0]):
        entry = first + 2 + 12 * i
        if struct.unpack_from("<H", tiff, entry)[0] in (256, 257):
            patch(tiff, (entry + 2, "<H", 4), (entry + 8, "<I", SIDE))
    put("a.tiff", "image", bytes(tiff))
    put("a.sgi", "image", patch(pillow("SGI"), (6, ">H", SIDE), (8, ">H", SIDE)))
    put("a.sun", "image", patch(ffmpeg("a.sun", "-frames:v", "1"), (4, ">I", SIDE), (8, ">I", SIDE)))
    put("a.pcx", "image", patch(pillow("PCX"), (8, "<H", SIDE - 1), (10, "<H", SIDE - 1), (66, "<H", SIDE + 1)))
    put("a.dds", "image", patch(pillow("DDS"), (12, "<I", SIDE), (16, "<I", SIDE)))
    put("a.dpx", "image", patch(ffmpeg("a.dpx", "-frames:v", "1"), (772, ">I", SIDE), (776, ">I", SIDE)))
    exr = ffmpeg("a.exr", "-frames:v", "1", "-pix_fmt", "gbrpf32le")
    for name in (b"dataWindow\0box2i\0", b"displayWindow\0box2i\0"):
        at = exr.find(name) + len(name) + 4
        patch(exr, (at + 8, "<i", SIDE - 1), (at + 12, "<i", SIDE - 1))
    put("a.exr", "image", bytes(exr))
    for compression in (0, 1):
        psd = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, min(SIDE, 30_000), min(SIDE, 30_000), 8, 3) + bytes(12)
        put(f"compression{compression}.psd", "image", psd + struct.pack(">H", compression) + bytes(900))
    put("a.qoi", "image", b"qoif" + struct.pack(">IIBB", SIDE, SIDE, 3, 0) + b"\xfe\xc8\x1e\x1e" + b"\xfd" * 90)
    j2k = ffmpeg("a.j2k", "-frames:v", "1", "-format", "j2k", "-c:v", "jpeg2000", "-f", "image2")
    at = j2k.find(b"\xff\x51") + 6
    sides = [(at + offset, ">I", SIDE) for offset in (0, 4, 16, 20)]  # of the picture, of its tiles
    put("a.j2k", "image", patch(j2k, *sides))


class Bits:
    """Writes H.264's bit fields."""

    def __init__(self):
        self.text = ""

    def put(self, value, count):
        self.text += format(value, f"0{count}b")

    def golomb(self, *values):
        for value in values:
            digits = format(value + 1, "b")
            self.text += "0" * (len(digits) - 1) + digits

    def unit(self, first):
        text = self.text + "1"
        text += "0" * (-len(text) % 8)
        body = bytes([first]) + int(text, 2).to_bytes(len(text) // 8, "big")
        escaped, zeros = bytearray(), 0
        for byte in body:
            if zeros >= 2 and byte <= 3:
                escaped.append(3)
                zeros = 0
            escaped.append(byte)
            zeros = zeros + 1 if byte == 0 else 0
        return b"\0\0\0\1" + bytes(escaped)


def h264(blocks):
    """A stream whose sequence header claims so many blocks of 16 x 16 a side."""
    sequence = Bits()
    sequence.put(66, 8), sequence.put(0, 8), sequence.put(52, 8)
    sequence.golomb(0, 0, 2, 1)
    sequence.put(0, 1)
    sequence.golomb(blocks - 1, blocks - 1)
    sequence.put(0b1000, 4)
    picture = Bits()
    picture.golomb(0, 0)
    picture.put(0, 2)
    picture.golomb(0, 0, 0)
    picture.put(0, 3)
    picture.golomb(0, 0, 0)
    picture.put(0, 3)
    slices = Bits()
    slices.golomb(0, 7, 0)
    slices.put(0, 4)
    slices.golomb(0)
    slices.put(0, 2)
    slices.golomb(0, 0, 0, 0, 0, 0)
    return sequence.unit(0x67) + picture.unit(0x68) + slices.unit(0x65)


def replace_all(data, old, new):
    assert old in data, old
    return bytes(data).replace(old, new)


def clips():
    sizes = struct.pack(">HH", 16, 16), struct.pack(">HH", SIDE, SIDE)
    put("a.mp4", "video", replace_all(ffmpeg("a.mp4", "-c:v", "libx264"), *sizes))
    put("a.mov", "video", replace_all(ffmpeg("a.mov", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p"), *sizes))
    mkv = ffmpeg("a.mkv", "-c:v", "mpeg4", size=304)  # a size of two bytes
    put("a.mkv", "video", replace_all(mkv, struct.pack(">H", 304), struct.pack(">H", SIDE)))
    webm = ffmpeg("a.webm", "-c:v", "libvpx", "-auto-alt-ref", "0")
    put("vp8.webm", "video", replace_all(webm, b"\x9d\x01\x2a\x10\x00\x10\x00", b"\x9d\x01\x2a\xff\x3f\xff\x3f"))
    for codec in ("mjpeg", "rawvideo", "ffv1"):
        avi = ffmpeg(f"{codec}.avi", "-c:v", codec, "-pix_fmt", "yuvj420p" if codec == "mjpeg" else "yuv420p")
        at = avi.find(b"strf") + 8
        patch(avi, (at + 4, "<i", SIDE), (at + 8, "<i", SIDE))
        lie = bytes(avi)
        put(f"{codec}.avi", "video", replace_all(lie, *sizes) if codec == "mjpeg" else lie)
    stream = h264(SIDE // 16)
    put("a.h264", "video", stream)
    subprocess.run(["ffmpeg", "-nostdin", "-v", "quiet", "-y", "-f", "h264", "-r", "25", "-i", str(OUT / "a.h264"),
                    "-c", "copy", str(OUT / "h264.ts")], check=True)
    print("h264.ts video")
    put("a.y4m", "video", b"YUV4MPEG2 W%d H%d F25:1 Ip C420\nFRAME\n" % (SIDE, SIDE) + bytes(900))


pictures()
libav_pictures()
clips()
