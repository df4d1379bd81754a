# Everything that is built and installed. "cmake --build BUILD --target product" leaves out tests and benchmarks.
set(product ddlrun probe_rank ddl ddl_pmix ddl_jax ddl_tensorflow ${DDL_MPI_TARGETS} slurm_probe hello_ddl check_ddl
  elastic_fit function_approximation mnist)
# The path in which the loader finds libraries is the same in the build tree and in the installed one. Where CMake is to
# replace it at the installation it ends that of the build tree with ':', and there the loader takes libraries from the
# folder that the user happens to be in.
foreach(target IN LISTS product)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
endforeach()
# Libraries of others may be in folders that the loader does not know, such as those of /opt.
foreach(target IN ITEMS ddlrun ddl_pmix slurm_probe)
  if(TARGET ${target} AND NOT DEFINED CMAKE_INSTALL_RPATH_USE_LINK_PATH)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endforeach()
add_custom_target(product)
add_dependencies(product manual)
set(product_files "")
foreach(target IN LISTS product)
  if(TARGET ${target}) # slurm-probe and the examples are optional
    add_dependencies(product ${target})
    string(APPEND product_files "\n  \"$<TARGET_FILE:${target}>\"")
  endif()
endforeach()
# A part, such as the manual pages, may be installed from a build that has only what it needs.
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/check_product.cmake" CONTENT
"if(CMAKE_INSTALL_COMPONENT)
  return()
endif()
foreach(file IN ITEMS${product_files})
  if(NOT EXISTS \"\${file}\")
    message(FATAL_ERROR \"Nothing is installed, because \${file} was not built. Build the whole product first: \"
      \"cmake --build ${PROJECT_BINARY_DIR} --target product\")
  endif()
endforeach()
")

# The documents, in the same layout as here, so that their links are valid. Messages of ddlrun name them. In the build
# tree they are at the same path relative to bin/.
install(FILES README.md INSTALL.md CONTRIBUTING.md CHANGELOG.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ddl-examples
  FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.h" PATTERN "*.py" PATTERN "*.md")
install(FILES cli/slurm_probe/COPYING DESTINATION "${CMAKE_INSTALL_DOCDIR}/cli/slurm_probe")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_DOCDIR}")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DOCDIR}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DOCDIR}/docs" SYMBOLIC)
endif()

# The package horovod, which --as-horovod gives to ranks, in a folder that has nothing else for Python.
install(DIRECTORY python/horovod DESTINATION "${CMAKE_INSTALL_DATADIR}/ddlrun/as-horovod"
  FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/ddlrun/as-horovod")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/horovod" "${PROJECT_BINARY_DIR}/share/ddlrun/as-horovod/horovod"
  SYMBOLIC)

# The files by which other projects find an installed libddl: find_package(ddl) defines ddl::ddl, and pkg-config has
# ddl. The targets are installed by the files that define them. The install tree may be moved as a whole.
include(CMakePackageConfigHelpers)

set(DDL_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/ddl")
install(EXPORT ddlTargets NAMESPACE ddl:: DESTINATION "${DDL_CMAKE_DIR}" COMPONENT libddl-dev)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/ddlConfig.cmake.in" "${PROJECT_BINARY_DIR}/generated/ddlConfig.cmake"
  INSTALL_DESTINATION "${DDL_CMAKE_DIR}")
# Programs for an earlier version compile with a later one of the same major number (docs/reference/libddl.md,
# "Versions").
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/generated/ddlConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/generated/ddlConfig.cmake" "${PROJECT_BINARY_DIR}/generated/ddlConfigVersion.cmake"
  DESTINATION "${DDL_CMAKE_DIR}" COMPONENT libddl-dev)

# From the folder of ddl.pc up to the prefix: "../.." for lib/pkgconfig.
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH DDL_PREFIX_FROM_PKGCONFIG "/prefix/${pkgconfig_dir}" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/ddl.pc.in" "${PROJECT_BINARY_DIR}/generated/ddl.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/ddl.pc" DESTINATION "${pkgconfig_dir}" COMPONENT libddl-dev)

# Modulefiles, for Lmod and for Environment Modules. They find the prefix from their own place in it.
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_DATADIR}")
  foreach(form IN ITEMS lua tcl)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/modulefile.${form}.in"
      "${PROJECT_BINARY_DIR}/generated/modulefile.${form}" @ONLY)
  endforeach()
  set(module_dir "${CMAKE_INSTALL_DATADIR}/modulefiles/ddlrun")
  install(FILES "${PROJECT_BINARY_DIR}/generated/modulefile.lua" DESTINATION "${module_dir}" COMPONENT modulefiles
    RENAME "${PROJECT_VERSION}.lua")
  install(FILES "${PROJECT_BINARY_DIR}/generated/modulefile.tcl" DESTINATION "${module_dir}" COMPONENT modulefiles
    RENAME "${PROJECT_VERSION}")
endif()
