# Third-party packages; each is found once. scripts/setup installs them on Debian 12 and 13, and names them elsewhere.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(yaml-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PMIX REQUIRED IMPORTED_TARGET pmix)
# Where pkg-config's pmix is a static library, for ddlrun's server: the shared one that libddl's module links.
set(DDL_PMIX_CLIENT "" CACHE FILEPATH
  "A shared libpmix for libddl's module, which is installed, too, for systems without one; empty: pkg-config's")
# evhttp, and what it needs; libpmix uses the same libevent_core.
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET libevent_extra>=2.1 libevent_core>=2.1)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.4)

# A single header in /usr/include.
find_path(MUSTACHE_INCLUDE_DIR kainjow/mustache.hpp REQUIRED)
add_library(ddl_mustache INTERFACE)
target_include_directories(ddl_mustache SYSTEM INTERFACE "${MUSTACHE_INCLUDE_DIR}")

# Debian ships Asio as headers, without a CMake or pkg-config file.
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(ddl_asio INTERFACE)
target_include_directories(ddl_asio SYSTEM INTERFACE "${ASIO_INCLUDE_DIR}")
target_compile_definitions(ddl_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(ddl_asio INTERFACE Threads::Threads)

# The static library if there is one: the loader would search for a shared one at every start of ddlrun, and most
# starts do not read YAML.
find_library(YAML_CPP_STATIC_LIBRARY "${CMAKE_STATIC_LIBRARY_PREFIX}yaml-cpp${CMAKE_STATIC_LIBRARY_SUFFIX}")
mark_as_advanced(YAML_CPP_STATIC_LIBRARY)
# yaml-cpp 0.8 has put its target into a namespace.
set(yaml_target yaml-cpp)
if(TARGET yaml-cpp::yaml-cpp)
  set(yaml_target yaml-cpp::yaml-cpp)
endif()
add_library(ddl_yaml INTERFACE)
target_include_directories(ddl_yaml SYSTEM INTERFACE $<TARGET_PROPERTY:${yaml_target},INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(ddl_yaml INTERFACE
  $<IF:$<BOOL:${YAML_CPP_STATIC_LIBRARY}>,${YAML_CPP_STATIC_LIBRARY},${yaml_target}>)
