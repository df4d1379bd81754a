# Third-party packages, each one found once. scripts/setup installs them on Debian 12.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PMIX REQUIRED IMPORTED_TARGET pmix)

# Debian ships Asio as headers alone, without a CMake or pkg-config file.
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(ddl_asio INTERFACE)
target_include_directories(ddl_asio SYSTEM INTERFACE "${ASIO_INCLUDE_DIR}")
target_compile_definitions(ddl_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(ddl_asio INTERFACE Threads::Threads)
