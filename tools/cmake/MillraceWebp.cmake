# libwebp as PkgConfig::MILLRACE_WEBP. Installed as well, as MillraceLibav.cmake is.
find_package(PkgConfig REQUIRED)
pkg_check_modules(MILLRACE_WEBP IMPORTED_TARGET GLOBAL QUIET libwebp>=1.2 libwebpdemux>=1.2)
if(NOT MILLRACE_WEBP_FOUND)
  message(FATAL_ERROR "libwebp 1.2 or later was not found: WebP images.\n"
    "Run tools/setup.sh, or install Debian's libwebp-dev, or give its place with PKG_CONFIG_PATH")
endif()
