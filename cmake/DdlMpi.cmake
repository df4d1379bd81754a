# Libraries of MPIs, for the modules of libddl that link them: those of this machine, by their compiler wrappers, and
# stand-ins for some that need not be here. There may be several MPIs, which CMake's FindMPI does not support.
#
# DDL_MPI_COMPILERS contains the names or paths of the wrappers; a site adds its own there.

set(DDL_MPI_COMPILERS "mpicc;mpicc.openmpi;mpicc.mpich" CACHE STRING
  "Compiler wrappers of the MPIs that can carry out libddl's collectives; empty: none")

# ddl_add_mpi_stub(NAME SOVERSION): libNAME.so.SOVERSION with the functions of MPI that libddl and ddl-bench call, all
# empty. A module or a program that links it needs an MPI's library of this soname where it is loaded. It is never
# installed.
function(ddl_add_mpi_stub name soversion)
  set(header "${PROJECT_SOURCE_DIR}/runtime/src/backend/mpi_abi/mpi.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  file(STRINGS "${header}" functions REGEX "^int MPI_")
  list(APPEND functions "int MPI_Init" "int MPI_Allgather" "int MPI_Allreduce" "int MPI_Alltoall" "int MPI_Bcast"
    "int MPI_Reduce_scatter_block")
  list(TRANSFORM functions REPLACE "^int (MPI_[A-Za-z_]+).*" "void \\1(void) {}\n")
  set(source "${PROJECT_BINARY_DIR}/generated/stub_${name}.c")
  file(GENERATE OUTPUT "${source}" CONTENT "$<JOIN:${functions},>")
  add_library(ddl_stub_${name} SHARED "${source}")
  set_target_properties(ddl_stub_${name} PROPERTIES
    OUTPUT_NAME ${name} SOVERSION ${soversion} C_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/mpi_stubs")
endfunction()

# Stores the names of the MPIs in ${result}, and defines ddl_mpi_flags_<name>, which the targets for this MPI link.
function(ddl_find_mpis result)
  set(found "")
  set(probe "${PROJECT_BINARY_DIR}/generated/which_mpi.c")
  file(WRITE "${probe}" [[
#include <mpi.h>
#if defined(OPEN_MPI)
MPI openmpi
#elif defined(MPICH_VERSION) || defined(I_MPI_VERSION)
MPI mpich
#else
MPI other
#endif
]])
  foreach(compiler IN LISTS DDL_MPI_COMPILERS)
    string(MAKE_C_IDENTIFIER "DDL_MPICC_${compiler}" variable)
    find_program(${variable} "${compiler}")
    mark_as_advanced(${variable})
    if(NOT ${variable})
      continue()
    endif()
    execute_process(COMMAND "${${variable}}" -E "${probe}"
      OUTPUT_VARIABLE preprocessed RESULT_VARIABLE status ERROR_QUIET)
    execute_process(COMMAND "${${variable}}" -show OUTPUT_VARIABLE shown RESULT_VARIABLE show_status
      ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0 OR NOT show_status EQUAL 0 OR NOT preprocessed MATCHES "MPI (openmpi|mpich|other)")
      message(WARNING "${${variable}} does not work; libddl gets no module for its MPI")
      continue()
    endif()
    set(name "${CMAKE_MATCH_1}")
    if(name IN_LIST found)
      continue()
    endif()
    list(APPEND found ${name})
    separate_arguments(words UNIX_COMMAND "${shown}")
    list(POP_FRONT words)
    add_library(ddl_mpi_flags_${name} INTERFACE)
    foreach(word IN LISTS words)
      if(word MATCHES "^-I(.+)")
        target_include_directories(ddl_mpi_flags_${name} SYSTEM INTERFACE "${CMAKE_MATCH_1}")
      elseif(word MATCHES "^-l")
        target_link_libraries(ddl_mpi_flags_${name} INTERFACE "${word}")
      elseif(word MATCHES "^-(L|Wl,)")
        target_link_options(ddl_mpi_flags_${name} INTERFACE "${word}")
      endif()
    endforeach()
    # The C++ bindings were removed from the standard, and cause warnings.
    target_compile_definitions(ddl_mpi_flags_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    message(STATUS "MPI: ${name} by ${${variable}}")
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()
