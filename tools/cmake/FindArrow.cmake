# Arrow C++ as Arrow::arrow. The wheel of pyarrow has headers and a versioned library, but no CMake
# package. Arrow_ROOT: a folder with include/ and lib/, as tools/setup.sh makes in .deps/arrow.
include(FindPackageHandleStandardArgs)

find_path(Arrow_INCLUDE_DIR arrow/api.h HINTS "${Arrow_ROOT}" "${MILLRACE_DEPS}/arrow"
          PATH_SUFFIXES include)
find_library(Arrow_LIBRARY arrow HINTS "${Arrow_ROOT}" "${MILLRACE_DEPS}/arrow" PATH_SUFFIXES lib)
if(Arrow_INCLUDE_DIR)
  file(STRINGS "${Arrow_INCLUDE_DIR}/arrow/util/config.h" line REGEX "#define ARROW_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" Arrow_VERSION "${line}")
endif()

find_package_handle_standard_args(Arrow
  REQUIRED_VARS Arrow_LIBRARY Arrow_INCLUDE_DIR VERSION_VAR Arrow_VERSION)
if(Arrow_FOUND AND NOT TARGET Arrow::arrow)
  add_library(Arrow::arrow SHARED IMPORTED)
  set_target_properties(Arrow::arrow PROPERTIES
    IMPORTED_LOCATION "${Arrow_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Arrow_INCLUDE_DIR}")
endif()
mark_as_advanced(Arrow_INCLUDE_DIR Arrow_LIBRARY)
