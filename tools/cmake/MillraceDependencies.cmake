# Where everything comes from. Each dependency can be given by its own variable or by
# CMAKE_PREFIX_PATH; what tools/setup.sh unpacked into .deps is found without.
list(APPEND CMAKE_PREFIX_PATH "${MILLRACE_DEPS}/taskflow/usr")

macro(millrace_require package what)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found: ${what}.\n"
      "Run tools/setup.sh, which brings everything, or install it and give CMake its place "
      "with -D${package}_DIR=... or -DCMAKE_PREFIX_PATH=...")
  endif()
endmacro()

find_package(Threads REQUIRED)
millrace_require(Taskflow "the task graph, header-only, version 3.9" 3.9 CONFIG)
millrace_require(spdlog "the logger (Debian: libspdlog-dev)" CONFIG)
millrace_require(nlohmann_json "JSON (Debian: nlohmann-json3-dev)" CONFIG)
millrace_require(hwy "vector code (Debian: libhwy-dev)" CONFIG)
millrace_require(dlpack "zero-copy exchange of arrays (Debian: libdlpack-dev)" CONFIG)
millrace_require(CLI11 "command lines of the tools (Debian: libcli11-dev)" CONFIG)
millrace_require(ZLIB "gzip (Debian: zlib1g-dev)")
millrace_require(JPEG "JPEG images (Debian: libjpeg62-turbo-dev)" MODULE)
millrace_require(PNG "PNG images (Debian: libpng-dev)" MODULE)
include(MillraceLibav)
include(MillraceWebp)
millrace_require(Arrow "caches (PyPI: pyarrow 26)" 26 MODULE)
find_path(MILLRACE_XXHASH_INCLUDE_DIR xxhash.h)
if(NOT MILLRACE_XXHASH_INCLUDE_DIR)
  message(FATAL_ERROR "xxhash.h was not found: checksums of caches (Debian: libxxhash-dev).\n"
    "Run tools/setup.sh, or give its folder with -DMILLRACE_XXHASH_INCLUDE_DIR=...")
endif()
if(MILLRACE_TESTS)
  millrace_require(GTest "the tests (Debian: libgtest-dev)" CONFIG)
  millrace_require(benchmark "the benchmarks (Debian: libbenchmark-dev)" CONFIG)
endif()
if(MILLRACE_TRAINING)
  millrace_require(Torch "LibTorch 2.13; or build without it: -DMILLRACE_TRAINING=OFF" 2.13 MODULE)
  # LibTorch has Gloo inside, but not the headers that its own header includes.
  find_path(MILLRACE_GLOO_INCLUDE_DIR gloo/context.h HINTS "${MILLRACE_DEPS}/gloo/usr/include")
  if(NOT MILLRACE_GLOO_INCLUDE_DIR)
    message(FATAL_ERROR "gloo/context.h was not found: ranks on CPUs (Debian: libgloo-dev).\n"
      "Run tools/setup.sh, or give its folder with -DMILLRACE_GLOO_INCLUDE_DIR=...")
  endif()
endif()

set(MILLRACE_HAS_CUDA OFF)
if(NOT MILLRACE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  # Real code for A100, H100 and B200, and PTX of the last for what comes after.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100 CACHE STRING "GPU architectures")
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    # CMake 3.25 does not know how to ask nvcc for C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    set(MILLRACE_HAS_CUDA ON)
  elseif(MILLRACE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MILLRACE_CUDA is ON, but no CUDA compiler was found. "
      "Put nvcc on PATH or give -DCMAKE_CUDA_COMPILER=...")
  endif()
endif()
message(STATUS "Millrace: training ${MILLRACE_TRAINING}, CUDA ${MILLRACE_HAS_CUDA}, "
               "tests ${MILLRACE_TESTS}, sanitizers '${MILLRACE_SANITIZE}'")
