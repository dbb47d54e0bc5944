"""Video files -> [4, 3, 17, 128, 128] uint8: the first 17 frames, centre crop; shorter files repeat the
last frame. OpenCV and decord resize with cv2's default bilinear filter, as most training code does."""
import os

from feeding import Peer, processes, shuffled, stacked, threads

BATCH, FRAMES, SIDE, WARM = 4, 17, 128, 64
CHAIN = f"scale=w={SIDE}:h={SIDE}:force_original_aspect_ratio=increase:flags=bilinear,crop={SIDE}:{SIDE}"


def clip_of(frames):
    """A list of HWC frames -> [3, FRAMES, SIDE, SIDE]."""
    import numpy
    import torch

    frames += [frames[-1]] * (FRAMES - len(frames))
    return torch.from_numpy(numpy.ascontiguousarray(numpy.stack(frames).transpose(3, 0, 1, 2)))


def centre_square(frame):
    height, width = frame.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return frame[top:top + side, left:left + side]


def _opencv_loader():
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "threads;1"
    import cv2

    cv2.setNumThreads(0)

    def load(path):
        capture, frames = cv2.VideoCapture(path), []
        while len(frames) < FRAMES:
            good, frame = capture.read()
            if not good:
                break
            frames.append(cv2.resize(centre_square(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)), (SIDE, SIDE)))
        capture.release()
        return clip_of(frames)

    return "opencv " + cv2.__version__, load


def opencv(files, workers):
    version, load = _opencv_loader()
    return Peer(version, processes(files, load, BATCH, workers), "one decoder thread each")


def opencv_threads(files, workers):
    version, load = _opencv_loader()
    return Peer(version, threads(files, stacked(load), BATCH, workers), "threads, one decoder thread each")


def pyav(files, workers):
    import av

    av.logging.set_level(av.logging.PANIC)

    def load(path):
        frames = []
        with av.open(path) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            graph = av.filter.Graph()
            nodes = [graph.add_buffer(template=stream)]
            for step in CHAIN.split(","):
                nodes.append(graph.add(*step.split("=", 1)))
            nodes += [graph.add("format", "rgb24"), graph.add("buffersink")]
            for before, after in zip(nodes, nodes[1:]):
                before.link_to(after)
            graph.configure()
            for frame in container.decode(stream):
                graph.push(frame)
                frames.append(graph.pull().to_ndarray())
                if len(frames) == FRAMES:
                    break
        return clip_of(frames)

    return Peer("pyav " + av.__version__, processes(files, load, BATCH, workers), "filter graph, one decoder thread")


def decord(files, workers):
    import cv2
    import decord

    cv2.setNumThreads(0)

    def load(path):
        reader = decord.VideoReader(path, ctx=decord.cpu(0), num_threads=1)
        frames = reader.get_batch(range(min(FRAMES, len(reader)))).asnumpy()
        return clip_of([cv2.resize(centre_square(frame), (SIDE, SIDE)) for frame in frames])

    return Peer("decord " + decord.__version__, processes(files, load, BATCH, workers), "one decoder thread")


def torchcodec(files, workers):
    import torch
    import torchcodec
    from torchcodec.decoders import VideoDecoder
    from torchcodec.transforms import CenterCrop, Resize

    def load(path):
        options = {"seek_mode": "approximate", "num_ffmpeg_threads": 1}
        seen = VideoDecoder(path, **options).metadata  # Resize needs both sides in advance
        shorter = min(seen.width, seen.height)
        size = max(SIDE, round(seen.height * SIDE / shorter)), max(SIDE, round(seen.width * SIDE / shorter))
        decoder = VideoDecoder(path, transforms=[Resize(size), CenterCrop((SIDE, SIDE))], **options)
        clip = decoder[0:FRAMES].permute(1, 0, 2, 3)
        if clip.shape[1] < FRAMES:
            clip = torch.cat([clip, clip[:, -1:].expand(-1, FRAMES - clip.shape[1], -1, -1)], 1)
        return clip.contiguous()

    version = "torchcodec " + torchcodec.__version__
    return Peer(version, threads(files, stacked(load), BATCH, workers), "threads, approximate seek")


def spdl(files, workers):
    import spdl
    import spdl.io
    import torch
    from spdl.pipeline import PipelineBuilder

    config = spdl.io.decode_config(decoder_options={"threads": "1"})

    def load(path):
        # Reads only the packets of the first 1.2 s of a video; GIFs are short.
        window = {} if path.lower().endswith(".gif") else {"timestamp": (0, 1.2)}
        packets = spdl.io.demux_video(path, **window)
        decoded = spdl.io.decode_packets(packets, filter_desc=CHAIN + ",format=pix_fmts=rgb24", decode_config=config,
                                         num_frames=FRAMES)
        clip = spdl.io.to_torch(spdl.io.convert_frames(decoded))[:FRAMES]
        if clip.shape[0] < FRAMES:
            clip = torch.cat([clip, clip[-1:].expand(FRAMES - clip.shape[0], -1, -1, -1)])
        return clip.permute(3, 0, 1, 2)

    def epoch(count):
        pipeline = (PipelineBuilder().add_source(shuffled(files, count)).pipe(load, concurrency=workers)
                    .aggregate(BATCH).pipe(lambda clips: torch.stack(clips).contiguous()).add_sink(4)
                    .build(num_threads=workers))
        with pipeline.auto_stop():
            yield from pipeline.get_iterator(timeout=60)

    return Peer("spdl " + spdl.__version__, epoch, "threads")


def pillow(files, workers):
    import numpy
    import PIL
    from PIL import Image, ImageSequence

    def load(path):
        frames = []
        for frame in ImageSequence.Iterator(Image.open(path)):
            square = Image.fromarray(centre_square(numpy.asarray(frame.convert("RGB"))))
            frames.append(numpy.asarray(square.resize((SIDE, SIDE), Image.BILINEAR)))
            if len(frames) == FRAMES:
                break
        return clip_of(frames)

    return Peer("pillow " + PIL.__version__, processes(files, load, BATCH, workers), "ImageSequence")


PEERS = {"opencv": opencv, "opencv_threads": opencv_threads, "pyav": pyav, "decord": decord,
         "torchcodec": torchcodec, "spdl": spdl}
