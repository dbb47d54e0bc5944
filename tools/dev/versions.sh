# Pinned versions of all dependencies. Only sourced, by tools/setup.sh; runs no commands.
# Debian packages come from bookworm and its point releases, so they have the versions of that suite.
# shellcheck shell=bash disable=SC2034

DEBIAN_PACKAGES=(
  # compiler, build and checks
  g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  clang-format clang-tidy python3 python3-venv
  # pipeline: logging, JSON lines, vector code, zero-copy exchange
  libspdlog-dev nlohmann-json3-dev libhwy-dev libdlpack-dev
  # decoders
  libjpeg62-turbo-dev libpng-dev libwebp-dev zlib1g-dev
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libswresample-dev
  # datasets: checksums of caches
  libxxhash-dev
  # tools and tests; python3-pil decodes with the same libjpeg-turbo that Millrace links
  libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev python3-pil python3-numpy ffmpeg
  # fuzzing
  clang libclang-rt-14-dev
)

# Sample media: photos, clips, sounds and meshes, 50 MB in total. Unpacked by
# tools/samples/sample_media.sh, not installed.
SAMPLE_PACKAGES=(kphotoalbum python3-imageio python3-mecavideo sonic-pi-samples dart-doc)

# Header-only. Bookworm has no version 3.9, so the package of a later suite is unpacked into .deps.
TASKFLOW_PACKAGE=libtaskflow-cpp-dev
TASKFLOW_SUITE=trixie
TASKFLOW_VERSION=3.9.0

# LibTorch contains Gloo without its headers. The package's headers are unpacked into .deps; installing
# it would pull in many dependencies that are not needed.
GLOO_PACKAGE=libgloo-dev

# Arrow C++ is inside pyarrow's wheel; the other packages compute reference results for the tests.
PYTHON_PACKAGES=(
  pyarrow==26.0.1 numpy==2.4.6 pillow==13.0.0 trimesh==5.2.0 x-clip==0.14.4
  soundfile==0.14.0 cffi==2.1.1 pycparser==3.12 typing-extensions==4.16.0
  tensorboard==2.21.0 protobuf==7.36.2 absl-py==2.5.1
)
# Other readers of caches, for the tests: polars, DuckDB, and Hugging Face's datasets with its dependencies.
PYTHON_PACKAGES+=(
  polars==2.1.0 polars-runtime-32==2.1.0 duckdb==2.0.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19
  pandas==3.1.1 python-dateutil==4.0.0 tzdata==2026.6 tqdm==4.70.1 xxhash==4.1.0 packaging==26.3
  pyyaml==6.0.3 huggingface-hub==2.4.0 hf-xet==1.8.0 httpx2==2.16.0 httpcore2==2.16.0 h11==0.16.0
  anyio==4.16.0 idna==3.20 truststore==0.10.5 click==8.5.1 filelock==4.2.10 fsspec==2026.9.0
)
# LibTorch is inside torch's wheel; the other packages are torch's dependencies.
PYTHON_PACKAGES_TORCH=(
  torch==2.13.0 jinja2==3.1.6 markupsafe==3.0.4 mpmath==1.3.0
  networkx==3.6.1 setuptools==80.9.0 sympy==1.14.0
  # references for the optimizers, the EMA and the warm-up
  lion-pytorch==0.2.5 ema-pytorch==0.4.8 beartype==0.23.1 pytorch-warmup==0.2.0
)
# libtorch_cpu links these two even on machines without a GPU.
PYTHON_PACKAGES_CPU=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
# Dependencies of libtorch_cuda; installed if the machine has a CUDA toolkit or driver.
PYTHON_PACKAGES_CUDA=(
  cuda-bindings==13.5.0 cuda-pathfinder==1.8.6 cuda-toolkit==13.0.3.0 nvidia-cublas==13.1.1.3
  nvidia-cuda-nvrtc==13.0.88 nvidia-cudnn-cu13==9.20.0.48 nvidia-cufft==12.0.0.61
  nvidia-cufile==1.15.1.6 nvidia-curand==10.4.0.35 nvidia-cusolver==12.0.4.66
  nvidia-cusparse==12.6.3.3 nvidia-cusparselt-cu13==0.8.1 nvidia-nccl-cu13==2.29.7
  nvidia-nvjitlink==13.5.37 nvidia-nvshmem-cu13==3.4.5 nvidia-nvtx==13.0.85 triton==3.7.1
)
