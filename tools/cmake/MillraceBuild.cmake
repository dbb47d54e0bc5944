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
# Note [files compiled alone]: a build with sanitizers is for the tests alone, and compiles six files
# at a time: most of the time would go into headers. Files whose unnamed namespaces
# use one name for two things, or that compile themselves once per instruction set, are left out of that:
# millrace_alone(a.cc b.cc), in the folder of their target. The compiler tells.
function(millrace_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
if(MILLRACE_SANITIZE)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)
  add_compile_options(-Wno-subobject-linkage)  # what one file says is then said by an included one
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
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

# Headers are included as <millrace/folder/name.h> in the tree as they are once installed.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include/millrace")
foreach(folder pipeline decoders datasets training)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}"
       "${PROJECT_BINARY_DIR}/include/millrace/${folder}" SYMBOLIC)
endforeach()

# millrace_library(pipeline HEADERS a.h SOURCES a.cc): the target of one folder, known to others as
# Millrace::pipeline. HEADERS are the public ones: installed, and checked to stand alone.
function(millrace_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;SOURCES")
  add_library(millrace_${folder} ${ARG_SOURCES})
  add_library(Millrace::${folder} ALIAS millrace_${folder})
  set_target_properties(millrace_${folder} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(millrace_${folder} PUBLIC cxx_std_20)
  target_include_directories(millrace_${folder} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(millrace_${folder} PRIVATE $<BUILD_INTERFACE:millrace_flags>)
  set_property(GLOBAL APPEND PROPERTY MILLRACE_LIBRARIES millrace_${folder})
  install(FILES ${ARG_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace/${folder})
  set(checks)
  foreach(header ${ARG_HEADERS})
    string(REPLACE ".h" ".cc" check "${CMAKE_CURRENT_BINARY_DIR}/alone/${header}")
    file(CONFIGURE OUTPUT "${check}" CONTENT "#include <millrace/${folder}/${header}>\n")
    list(APPEND checks "${check}")
  endforeach()
  # Not for training/: each check would read LibTorch's headers again, 25 s a time. Not under
  # sanitizers: they change nothing about it.
  if(MILLRACE_TESTS AND checks AND NOT folder STREQUAL "training" AND NOT MILLRACE_SANITIZE)
    add_library(millrace_${folder}_headers_alone OBJECT ${checks})
    target_link_libraries(millrace_${folder}_headers_alone PRIVATE
                          millrace_flags millrace_${folder})
  endif()
endfunction()
