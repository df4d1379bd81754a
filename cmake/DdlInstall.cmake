# The documents, laid out as here, so that their links hold: messages of ddlrun's name them. The build tree has them at
# the same place beside bin/.
install(FILES README.md CONTRIBUTING.md CHANGELOG.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.h")
install(FILES cli/slurm_probe/COPYING DESTINATION "${CMAKE_INSTALL_DOCDIR}/cli/slurm_probe")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_DOCDIR}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DOCDIR}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DOCDIR}/docs" SYMBOLIC)
endif()

# What lets others find an installed libddl: find_package(ddl) gives ddl::ddl, and pkg-config knows ddl. The targets
# themselves are installed where they are made. The tree may be moved as a whole.
include(CMakePackageConfigHelpers)

set(DDL_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/ddl")
install(EXPORT ddlTargets NAMESPACE ddl:: DESTINATION "${DDL_CMAKE_DIR}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/ddlConfig.cmake.in" "${PROJECT_BINARY_DIR}/generated/ddlConfig.cmake"
  INSTALL_DESTINATION "${DDL_CMAKE_DIR}")
# A later version with the same major number compiles what an earlier one compiled (docs/reference/libddl.md, "Versions").
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/generated/ddlConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/generated/ddlConfig.cmake" "${PROJECT_BINARY_DIR}/generated/ddlConfigVersion.cmake"
  DESTINATION "${DDL_CMAKE_DIR}")

# From the folder of ddl.pc up to the prefix: "../.." for lib/pkgconfig.
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH DDL_PREFIX_FROM_PKGCONFIG "/prefix/${pkgconfig_dir}" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/ddl.pc.in" "${PROJECT_BINARY_DIR}/generated/ddl.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/ddl.pc" DESTINATION "${pkgconfig_dir}")
