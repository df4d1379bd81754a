// What a shared library links, read from its file: the loader would load it to find out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl::runtime {

/// The sonames that a 64-bit ELF file names as DT_NEEDED, in their order. Empty if it names none, is damaged, or is of
/// another kind. Pure.
std::vector<std::string> needed_libraries(std::string_view elf);

}  // namespace ddl::runtime
