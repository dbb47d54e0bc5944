# FFmpeg's libraries as PkgConfig::MILLRACE_LIBAV. Installed as well: our libraries are static, so
# whoever links to them links to these too.
find_package(PkgConfig REQUIRED)
pkg_check_modules(MILLRACE_LIBAV IMPORTED_TARGET GLOBAL QUIET
  libavformat>=59.27 libavcodec>=59.37 libswscale>=6.7 libswresample>=4.7 libavutil>=57.28)
if(NOT MILLRACE_LIBAV_FOUND)
  message(FATAL_ERROR "FFmpeg 5.1 or later was not found: video and audio.\n"
    "Run tools/setup.sh, or install Debian's libavformat-dev libavcodec-dev libavutil-dev "
    "libswscale-dev libswresample-dev, or give its place with PKG_CONFIG_PATH")
endif()
