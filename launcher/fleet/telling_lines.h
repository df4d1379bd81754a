// What a person should read of a text that a program wrote before it gave up.
#pragma once

#include <string>
#include <string_view>

namespace ddl::launcher {

/// The lines that say something, without ssh's routine notices and without control characters; at most the last three, joined
/// by " / ".
std::string telling_lines(std::string_view text);

}  // namespace ddl::launcher
