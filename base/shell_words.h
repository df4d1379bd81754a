// An option's value that consists of several words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl {

/// The words of a text as a POSIX shell splits them (blanks, '...', "...", backslashes; XCU 2.2), and nothing else of
/// a shell's: $, ~, *, ; and the like stand for themselves. Error: a quote that is not closed, a backslash at the
/// end.
Result<std::vector<std::string>> split_shell_words(std::string_view text);

/// The words as a person could type them: quoted where a shell needs it, and separated by blanks.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace ddl
