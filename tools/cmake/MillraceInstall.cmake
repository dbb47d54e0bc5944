# cmake --install, and the package that find_package(Millrace) finds.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY MILLRACE_LIBRARIES)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Millrace")
install(TARGETS ${libraries} EXPORT MillraceTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET millrace_cuda)
  install(TARGETS millrace_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT MillraceTargets NAMESPACE Millrace:: DESTINATION ${package})
configure_package_config_file(tools/cmake/MillraceConfig.cmake.in
  "${PROJECT_BINARY_DIR}/MillraceConfig.cmake" INSTALL_DESTINATION ${package})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/MillraceConfig.cmake"
  "${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake"
  tools/cmake/FindArrow.cmake tools/cmake/MillraceLibav.cmake tools/cmake/MillraceWebp.cmake DESTINATION ${package})
if(MILLRACE_TRAINING)
  install(FILES tools/cmake/FindTorch.cmake DESTINATION ${package})
endif()
