# Compiler settings that every target of the project shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_library(ddl_build_flags INTERFACE)
target_compile_options(ddl_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wno-missing-field-initializers)
# g++ 12 warns about the concatenation of std::string when it optimises (https://gcc.gnu.org/PR105651).
target_compile_options(ddl_build_flags INTERFACE
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
# Every include names its component: "base/error.h". A test checks the directions between components.
target_include_directories(ddl_build_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")

# For code that runs once in a job and then waits for the kernel and the network: -O1 compiles a third faster.
add_library(ddl_runs_once INTERFACE)
target_compile_options(ddl_runs_once INTERFACE $<$<CONFIG:Release>:-O1>)

# ddl_add_folders(NAME FOLDERS folder... SOURCES source... PUBLIC library... PRIVATE library...): each folder is a
# static library NAME_folder, which is linked to those of the folders before it alone, as it may include only these
# (docs/architecture.md). NAME stands for all of them.
function(ddl_add_folders name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;SOURCES;PUBLIC;PRIVATE")
  add_library(${name} INTERFACE)
  set(before ${arg_PUBLIC})
  foreach(folder IN LISTS arg_FOLDERS)
    set(own ${arg_SOURCES})
    list(FILTER own INCLUDE REGEX "^${folder}/")
    add_library(${name}_${folder} STATIC ${own})
    target_link_libraries(${name}_${folder} PUBLIC ${before} PRIVATE ${arg_PRIVATE})
    list(PREPEND before ${name}_${folder})
  endforeach()
  target_link_libraries(${name} INTERFACE ${before})
endfunction()

if(DDL_SANITIZE)
  target_compile_options(ddl_build_flags INTERFACE
    -fsanitize=${DDL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ddl_build_flags INTERFACE -fsanitize=${DDL_SANITIZE})
endif()
if(DDL_BUILD_FUZZERS)
  # All code reports its coverage to the fuzzers; only the fuzzers themselves link the main() of libFuzzer.
  target_compile_options(ddl_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
