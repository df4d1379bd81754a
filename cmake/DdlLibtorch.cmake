# libtorch (Debian: libtorch-dev), for tests and examples: the target ddl_libtorch, where it is installed. It is built
# without sanitizers, which would find what is its own.
find_path(DDL_TORCH_HEADERS torch/script.h)
find_library(DDL_TORCH_CPU torch_cpu)
find_library(DDL_TORCH_C10 c10)
mark_as_advanced(DDL_TORCH_HEADERS DDL_TORCH_CPU DDL_TORCH_C10)
if(DDL_TORCH_HEADERS AND DDL_TORCH_CPU AND DDL_TORCH_C10 AND NOT DDL_SANITIZE)
  add_library(ddl_libtorch INTERFACE)
  target_include_directories(ddl_libtorch SYSTEM INTERFACE
    "${DDL_TORCH_HEADERS}" "${DDL_TORCH_HEADERS}/torch/csrc/api/include")
  target_link_libraries(ddl_libtorch INTERFACE "${DDL_TORCH_CPU}" "${DDL_TORCH_C10}")
endif()
