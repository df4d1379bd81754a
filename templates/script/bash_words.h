// Words of a bash script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl::templates {

/// Quotes text as one word of bash without a line break, so that a person reads the script by lines as bash does.
std::string bash_quote(std::string_view word);

/// The same, but bash replaces what $ begins, as in double quotes; "\$" is a $. "$@" alone becomes as many words as the
/// script has arguments.
std::string bash_expanded(std::string_view word);

/// The words, each quoted, or expanded by bash, with blanks between them.
std::string bash_words(const std::vector<std::string>& words, bool expands = false);

}  // namespace ddl::templates
