"""Animated GIFs -> [4, 3, 17, 128, 128] uint8, like peers_clips.py."""
from peers_clips import WARM, opencv, opencv_threads, pillow, pyav, spdl

PEERS = {"opencv": opencv, "opencv_threads": opencv_threads, "pillow": pillow, "pyav": pyav, "spdl": spdl}
