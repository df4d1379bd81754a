# Debian packages by "cpack -G DEB" in the build folder; scripts/package deb configures a build for them.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ddlrun)
set(CPACK_PACKAGE_CONTACT "The authors of ddlrun <ddlrun@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # by CPACK_DEBIAN_DEBUGINFO_PACKAGE, which keeps the symbols
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Of libddl itself, which other packages link, and of MPIs that no package of Debian has.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}" "${DDL_MPI_STUBS}")
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/DebianDocuments.cmake")
set(CPACK_DDL_COPYRIGHT "${PROJECT_SOURCE_DIR}/scripts/packaging/debian-copyright")
set(CPACK_DDL_LIBDIR "${CMAKE_INSTALL_LIBDIR}")

set(library libddl${DDL_SOVERSION})
set(same_version "(= ${PROJECT_VERSION})")
# Components of the install tree that go into the package of another one.
set(CPACK_COMPONENT_MANUAL_GROUP ddlrun)
set(CPACK_COMPONENT_MANUAL-DEVELOPMENT_GROUP libddl-dev)
set(CPACK_COMPONENTS_ALL manual manual-development)
set(CPACK_DDL_PACKAGES "")
# ddl_package(NAME SECTION DEPENDS SUMMARY [line of the description...])
function(ddl_package name section depends summary)
  string(TOUPPER "${name}" key)
  list(JOIN ARGN "\n" text)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME "${name}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION "${section}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_GROUP "${name}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${name} PARENT_SCOPE)
  set(CPACK_DDL_PACKAGES ${CPACK_DDL_PACKAGES} ${name} PARENT_SCOPE)
endfunction()

ddl_package(ddlrun utils "${library} ${same_version}" "launcher for distributed training"
  "Starts the processes of a job on this machine, over ssh or in a Slurm job,"
  "binds each to its cores and GPU, and reports which one failed first.")
ddl_package(${library} libs "" "collectives for distributed training (library)"
  "Training programs of several processes average gradients and exchange other"
  "buffers by this library. It runs under ddlrun, srun and mpirun.")
ddl_package(libddl-dev libdevel "${library} ${same_version}" "collectives for distributed training (development files)"
  "Headers for C and C++, and what CMake and pkg-config need to find libddl.")
ddl_package(ddl-examples misc "ddlrun ${same_version}" "examples of distributed training with libddl"
  "Small programs for C, C++ and Python, as sources and, for C and C++, compiled.")
foreach(mpi IN LISTS DDL_MPIS)
  ddl_package(${library}-${mpi} libs "${library} ${same_version}" "collectives for distributed training (${mpi})"
    "A module of libddl for programs whose buffers this MPI shall move.")
endforeach()
if(TARGET slurm_probe)
  ddl_package(ddl-slurm-probe utils "ddlrun ${same_version}" "asks libslurm about a cluster, for ddlrun"
    "With it ddlrun reads partitions and nodes from libslurm, not from the output of"
    "commands.")
endif()
# What dpkg does when the library is installed, and what packages that link it depend on.
set(control "${PROJECT_BINARY_DIR}/generated/debian")
file(WRITE "${control}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${control}/shlibs" "libddl ${DDL_SOVERSION} ${library} (>= ${PROJECT_VERSION})\n")
string(TOUPPER "${library}" key)
set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${control}/triggers;${control}/shlibs")
set(CPACK_DEBIAN_DDLRUN_PACKAGE_RECOMMENDS "openssh-client")
set(CPACK_DEBIAN_DDLRUN_PACKAGE_SUGGESTS "ddl-slurm-probe, ddl-examples, python3-ddl")
# Two headers of ddl/training need it.
set(CPACK_DEBIAN_LIBDDL-DEV_PACKAGE_SUGGESTS "nlohmann-json3-dev")

include(CPack)
