# LibTorch as a light target, Torch::cpu (libtorch_cpu and libc10), and nothing of CUDA in it. The
# wheel's own package links libtorch_cuda into everything, which costs a second at each start. Where
# the CUDA half is there, with NCCL's header, it is a target of its own, Torch::cuda.
# Torch_DIR: the torch folder, i.e. the one with include/ and lib/ (its share/cmake/Torch will do).
include(FindPackageHandleStandardArgs)

find_path(Torch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  HINTS "${Torch_DIR}" "${Torch_DIR}/../../.." "${MILLRACE_DEPS}/libtorch" PATH_SUFFIXES include)
if(Torch_INCLUDE_DIR)
  get_filename_component(Torch_LIBRARY_DIR "${Torch_INCLUDE_DIR}/../lib" ABSOLUTE)
  find_library(Torch_CPU_LIBRARY torch_cpu HINTS "${Torch_LIBRARY_DIR}" NO_DEFAULT_PATH)
  find_library(Torch_C10_LIBRARY c10 HINTS "${Torch_LIBRARY_DIR}" NO_DEFAULT_PATH)
  find_library(Torch_GOMP_LIBRARY NAMES libgomp.so.1 HINTS "${Torch_LIBRARY_DIR}" NO_DEFAULT_PATH)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${Torch_INCLUDE_DIR}/torch/headeronly/version.h" line
         REGEX "#define TORCH_VERSION_${part} ")
    string(REGEX REPLACE ".* ([0-9]+)$" "\\1" Torch_${part} "${line}")
  endforeach()
  set(Torch_VERSION "${Torch_MAJOR}.${Torch_MINOR}.${Torch_PATCH}")
endif()

find_package_handle_standard_args(Torch
  REQUIRED_VARS Torch_CPU_LIBRARY Torch_C10_LIBRARY Torch_INCLUDE_DIR
  VERSION_VAR Torch_VERSION)
if(Torch_FOUND AND NOT TARGET Torch::cpu)
  add_library(Torch::c10 SHARED IMPORTED)
  set_target_properties(Torch::c10 PROPERTIES IMPORTED_LOCATION "${Torch_C10_LIBRARY}")
  add_library(Torch::cpu SHARED IMPORTED)
  set_target_properties(Torch::cpu PROPERTIES
    IMPORTED_LOCATION "${Torch_CPU_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${Torch_INCLUDE_DIR};${Torch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES Torch::c10)
  # Without OpenMP at::parallel_for, which is a template in a header, runs on one thread. The
  # threads are LibTorch's own: there must not be two such libraries in one program.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND Torch_GOMP_LIBRARY)
    set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
                 $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
    set_property(TARGET Torch::cpu APPEND PROPERTY INTERFACE_LINK_LIBRARIES
                 "${Torch_GOMP_LIBRARY}")
  endif()
endif()
if(Torch_FOUND AND NOT TARGET Torch::cuda)
  find_library(Torch_CUDA_LIBRARY torch_cuda HINTS "${Torch_LIBRARY_DIR}" NO_DEFAULT_PATH)
  find_library(Torch_C10_CUDA_LIBRARY c10_cuda HINTS "${Torch_LIBRARY_DIR}" NO_DEFAULT_PATH)
  # The very NCCL that LibTorch was built with: its structures are part of LibTorch's classes.
  file(REAL_PATH "${Torch_LIBRARY_DIR}" Torch_real_dir)
  find_path(Torch_NCCL_INCLUDE_DIR nccl.h NO_DEFAULT_PATH
            HINTS "${Torch_real_dir}/../../nvidia/nccl/include")
  if(Torch_CUDA_LIBRARY AND Torch_C10_CUDA_LIBRARY AND Torch_NCCL_INCLUDE_DIR)
    add_library(Torch::cuda INTERFACE IMPORTED)
    set_target_properties(Torch::cuda PROPERTIES
      INTERFACE_COMPILE_DEFINITIONS USE_C10D_NCCL
      INTERFACE_INCLUDE_DIRECTORIES "${Torch_NCCL_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES
        "${Torch_CUDA_LIBRARY};${Torch_C10_CUDA_LIBRARY};Torch::cpu")
  endif()
endif()
mark_as_advanced(Torch_CUDA_LIBRARY Torch_C10_CUDA_LIBRARY Torch_NCCL_INCLUDE_DIR)
mark_as_advanced(Torch_INCLUDE_DIR Torch_CPU_LIBRARY Torch_C10_LIBRARY Torch_GOMP_LIBRARY)
