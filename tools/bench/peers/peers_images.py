"""JPEG files -> [32, 3, 256, 256] uint8: RGB, shorter side resized to 256, random flip, centre crop. The
filter is antialiased bilinear (area in OpenCV)."""
import random

from feeding import Peer, processes, shuffled, threads

BATCH, SIDE, WARM = 32, 256, 160


def torchvision(files, workers):
    import torchvision
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    change = v2.Compose([v2.Resize(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.CenterCrop(SIDE)])
    load = lambda path: change(decode_image(read_file(path), mode=ImageReadMode.RGB))
    return Peer("torchvision " + torchvision.__version__, processes(files, load, BATCH, workers), "decode_image")


def pillow(files, workers):
    import PIL
    from PIL import Image
    from torchvision import transforms

    change = transforms.Compose([transforms.Resize(SIDE), transforms.RandomHorizontalFlip(),
                                 transforms.CenterCrop(SIDE), transforms.PILToTensor()])
    load = lambda path: change(Image.open(path).convert("RGB"))
    return Peer("pillow " + PIL.__version__, processes(files, load, BATCH, workers), "the plain PyTorch way")


def _square(image):
    """HWC with shorter side SIDE -> CHW square, randomly flipped."""
    height, width = image.shape[:2]
    top, left = (height - SIDE) // 2, (width - SIDE) // 2
    image = image[top:top + SIDE, left:left + SIDE]
    if random.random() < 0.5:
        image = image[:, ::-1]
    return image.transpose(2, 0, 1)


def _resized(image):
    import cv2

    height, width = image.shape[:2]
    shorter = min(height, width)
    size = max(SIDE, round(width * SIDE / shorter)), max(SIDE, round(height * SIDE / shorter))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if shorter > SIDE else cv2.INTER_LINEAR)


def _opencv_threads(files, workers, decode):
    import cv2
    import numpy
    import torch

    cv2.setNumThreads(0)

    def load_batch(paths):
        batch = numpy.empty((len(paths), 3, SIDE, SIDE), numpy.uint8)
        for row, path in enumerate(paths):
            batch[row] = _square(_resized(decode(path)))
        return torch.from_numpy(batch)

    return threads(files, load_batch, BATCH, workers)


def opencv(files, workers):
    import cv2

    epoch = _opencv_threads(files, workers, lambda path: cv2.imread(path, cv2.IMREAD_COLOR_RGB))
    return Peer("opencv " + cv2.__version__, epoch, "threads")


def simplejpeg(files, workers):
    import cv2
    import simplejpeg

    def decode(path):
        return simplejpeg.decode_jpeg(open(path, "rb").read(), "RGB", min_height=SIDE, min_width=SIDE, min_factor=1,
                                      fastdct=False, fastupsample=False)

    version = f"simplejpeg {simplejpeg.__version__} + opencv {cv2.__version__}"
    return Peer(version, _opencv_threads(files, workers, decode), "threads, scaled decoding")


def spdl(files, workers):
    import spdl
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    chain = f"scale=w={SIDE}:h={SIDE}:force_original_aspect_ratio=increase:flags=bilinear,crop={SIDE}:{SIDE}"

    def decode(path):
        flip = ",hflip" if random.random() < 0.5 else ""
        return spdl.io.decode_packets(spdl.io.demux_image(path), filter_desc=f"{chain}{flip},format=pix_fmts=rgb24")

    def join(frames):
        return spdl.io.to_torch(spdl.io.convert_frames(frames)).permute(0, 3, 1, 2)

    def epoch(count):
        pipeline = (PipelineBuilder().add_source(shuffled(files, count)).pipe(decode, concurrency=workers)
                    .aggregate(BATCH).pipe(join).add_sink(4).build(num_threads=workers))
        with pipeline.auto_stop():
            yield from pipeline.get_iterator(timeout=60)

    return Peer("spdl " + spdl.__version__, epoch, "threads")


def dali(files, workers):
    import nvidia.dali
    from nvidia.dali import fn, types

    @nvidia.dali.pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None, prefetch_queue_depth=2)
    def graph():
        data, _ = fn.readers.file(files=files, random_shuffle=True, pad_last_batch=False)
        image = fn.decoders.image(data, device="cpu", output_type=types.RGB)
        image = fn.resize(image, resize_shorter=SIDE, interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.crop_mirror_normalize(image, crop=(SIDE, SIDE), mirror=fn.random.coin_flip(), dtype=types.UINT8,
                                        output_layout="CHW", mean=[0.0] * 3, std=[1.0] * 3)

    pipeline = graph()
    pipeline.build()

    def epoch(count):
        for _ in range(-(-count // BATCH)):
            yield pipeline.run()[0].as_tensor()

    return Peer("dali " + nvidia.dali.__version__, epoch, "threads")


def tfdata(files, workers):
    import tensorflow as tf

    def load(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        shape = tf.cast(tf.shape(image)[:2], tf.float32)
        size = tf.maximum(SIDE, tf.cast(tf.round(shape * SIDE / tf.reduce_min(shape)), tf.int32))
        image = tf.image.random_flip_left_right(tf.image.resize(image, size, "bilinear", antialias=True))
        top, left = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
        image = image[top:top + SIDE, left:left + SIDE]
        image.set_shape([SIDE, SIDE, 3])
        return tf.transpose(tf.cast(image + 0.5, tf.uint8), [2, 0, 1])

    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    data = (tf.data.Dataset.from_tensor_slices(files).shuffle(len(files)).repeat()
            .map(load, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False))
    epoch = lambda count: data.take(count).batch(BATCH).prefetch(tf.data.AUTOTUNE).with_options(options)
    return Peer("tensorflow " + tf.__version__, epoch, "tf.data, threads")


PEERS = {"torchvision": torchvision, "pillow": pillow, "opencv": opencv, "simplejpeg": simplejpeg, "spdl": spdl,
         "dali": dali, "tf.data": tfdata}
