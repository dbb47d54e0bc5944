# How everything is compiled: the standard, warnings, sanitizers, fast tools where they are found,
# and the helper that makes one library per folder.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Every program in one place; libraries that programs open at run time beside them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# As long as the other, or CMake fills it with empty entries, which mean the current folder.
set(CMAKE_BUILD_RPATH "${CMAKE_INSTALL_RPATH}")

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE)
  # Neither a precompiled header nor another folder of the same sources is a reason to compile again.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=true "${MILLRACE_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${MILLRACE_CCACHE}")
endif()
find_program(MILLRACE_MOLD mold)
if(MILLRACE_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()

add_library(millrace_flags INTERFACE)
target_compile_options(millrace_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that are not there.
  target_compile_options(millrace_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(MILLRACE_WERROR)
  target_compile_options(millrace_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Note [files compiled together]: most of the time of a build goes into reading headers, and into what
# LibTorch's headers leave to be instantiated at the end of a file, however short the file is. So the
# libraries and the tests are compiled several files at a time: four, and six with sanitizers, which are
# for the tests alone. Files that use one name for two things in their unnamed namespaces, or that
# compile themselves once per instruction set, are left out of that: millrace_alone(a.cc b.cc), in the
# folder of their target. The compiler tells. The presets dev and lint compile every file on its own.
function(millrace_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

set(MILLRACE_UNITY_FILES 4)
if(MILLRACE_SANITIZE)
  set(MILLRACE_UNITY_FILES 6)
endif()

# millrace_quick_build(target): several files of it at a time.
function(millrace_quick_build target)
  if(MILLRACE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE
                          ${MILLRACE_UNITY_FILES})
    # What one file says is then said by an included one.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# millrace_together(target a.cc b.cc ...): files of `target` that are compiled as one, three at a time.
function(millrace_together target)
  if(NOT MILLRACE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  set(count 0)
  foreach(source ${ARGN})
    math(EXPR part "${count} / 3")
    string(MAKE_C_IDENTIFIER "${source}" name)
    if(NOT DEFINED first_${part})
      set(first_${part} ${name})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${first_${part}})
    math(EXPR count "${count} + 1")
  endforeach()
endfunction()
if(MILLRACE_SANITIZE)
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
  # GCC 12 takes members of LibTorch's options for uninitialised when checks are added to them.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(MILLRACE_SANITIZE MATCHES "thread")
    # Taskflow's work-stealing queues use fences, which the tool does not model.
    add_compile_options(-Wno-tsan)
  endif()
endif()

if(MILLRACE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MILLRACE_FUZZ needs clang (Debian: clang libclang-rt-14-dev); "
                        "use the preset: cmake --preset fuzz")
  endif()
  # Everything counts its branches for the fuzzer; only the targets get its main().
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Headers are included as <millrace/room/folder/name.h>, and a room's umbrella header as <millrace/room.h>,
# in the tree as they are once installed.
set(MILLRACE_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${MILLRACE_INCLUDE_DIR}/millrace")
foreach(room pipeline decoders datasets training)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${room}" "${MILLRACE_INCLUDE_DIR}/millrace/${room}" SYMBOLIC)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${room}/${room}.h" "${MILLRACE_INCLUDE_DIR}/millrace/${room}.h" SYMBOLIC)
endforeach()

# <millrace/version.h>: the version stands in project() and nowhere else.
configure_file("${CMAKE_CURRENT_LIST_DIR}/version.h.in" "${MILLRACE_INCLUDE_DIR}/millrace/version.h" @ONLY)

# millrace_library(pipeline): the library of one room, known to others as Millrace::pipeline. Its files
# are listed once, folder by folder:
#
#   millrace_folder(pipeline base HEADERS error.h log.h SOURCES log.cc)
#
# HEADERS are the public ones: they are installed, and the target all_verify_interface_header_sets
# compiles each of them alone (those of training/, which read LibTorch's headers for 15 s each, in
# tools/lint.sh). Private headers need no mention.
function(millrace_library room)
  add_library(millrace_${room})
  add_library(Millrace::${room} ALIAS millrace_${room})
  set_target_properties(millrace_${room} PROPERTIES EXPORT_NAME ${room})
  target_compile_features(millrace_${room} PUBLIC cxx_std_20)
  target_include_directories(millrace_${room} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(millrace_${room} PRIVATE $<BUILD_INTERFACE:millrace_flags>)
  millrace_quick_build(millrace_${room})
  if(NOT room STREQUAL "training")
    set_target_properties(millrace_${room} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
  set_property(GLOBAL APPEND PROPERTY MILLRACE_LIBRARIES millrace_${room})
  target_sources(millrace_${room} PUBLIC FILE_SET HEADERS BASE_DIRS "${MILLRACE_INCLUDE_DIR}")
  if(EXISTS "${PROJECT_SOURCE_DIR}/${room}/${room}.h")
    target_sources(millrace_${room} PUBLIC FILE_SET HEADERS FILES "${MILLRACE_INCLUDE_DIR}/millrace/${room}.h")
  endif()
endfunction()

function(millrace_folder room folder)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "HEADERS;SOURCES")
  list(TRANSFORM ARG_HEADERS PREPEND "${MILLRACE_INCLUDE_DIR}/millrace/${room}/${folder}/")
  list(TRANSFORM ARG_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/${room}/${folder}/")
  target_sources(millrace_${room} PUBLIC FILE_SET HEADERS FILES ${ARG_HEADERS} PRIVATE ${ARG_SOURCES})
endfunction()
