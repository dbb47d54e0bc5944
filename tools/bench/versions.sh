# Pinned versions of the peers that tools/bench.sh measures. Only sourced; runs no commands.
# shellcheck shell=bash disable=SC2034
PEERS_TORCH=(
  torch==2.13.0 torchvision==0.28.0 torchcodec==0.17.0 numpy==2.4.6 pillow==13.0.0
  opencv-python-headless==5.0.0.93 simplejpeg==1.9.0 spdl==0.8.0 spdl-io==0.8.0 av==18.1.0 decord==0.6.0
  soundfile==0.14.0 soxr==1.1.0 librosa==0.11.0 trimesh==5.2.0 assimp_py==1.1.0 matplotlib==3.11.2
)
PEER_TORCHAUDIO=torchaudio==2.11.0
PEER_MUSICLM=musiclm-pytorch==0.2.8
PEERS_DALI=(nvidia-dali-cuda130==2.4.0 numpy==2.4.6)
PEERS_TENSORFLOW=(tensorflow-cpu==2.21.0)
