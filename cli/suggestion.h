// "Did you mean ...?"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddl::cli {

/// The available option whose spelling is closest to word, as it is spelt; nullopt if none is close.
std::optional<std::string> suggest_option(std::string_view word);

}  // namespace ddl::cli
