// The little of UTF-8 that cutting and showing ranks' output needs (Unicode 15, table 3-7).
#pragma once

#include <cstddef>
#include <string_view>

namespace ddl::launcher {

/// Number of bytes at the end of text, 0 to 3, that begin a character and could still become a valid one: where text
/// is cut before them, no character is cut. 0 for whatever is not UTF-8.
std::size_t incomplete_utf8_tail(std::string_view text);

/// Length of the valid character that text begins with; 0 if it begins with none.
std::size_t utf8_character_length(std::string_view text);

}  // namespace ddl::launcher
