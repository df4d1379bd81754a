// Small pure functions over text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddl {

/// The parts between separators; "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// A whole decimal number, with a sign at most: no spaces, no trailing text, no overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// A whole finite decimal number such as "0.5"; independent of the locale.
std::optional<double> parse_number(std::string_view text);

/// The word as a POSIX shell needs it: quoted only if necessary.
std::string shell_quote(std::string_view word);
/// Text for between or inside the tags of XML; control characters, which it may not have, become spaces.
std::string xml_escape(std::string_view text);
/// "1 rank", "2 ranks", "2 processes".
std::string counted(std::int64_t count, std::string_view noun);
/// "0-3,8", of ascending numbers: as CpuSet::list(), for ranks and other numbers, which may be of any size.
std::string list_of_numbers(const std::vector<int>& numbers);
/// Edits (insert, remove, replace, swap neighbours) between two words.
int edit_distance(std::string_view a, std::string_view b);
/// The one of several words of which this is most likely a misspelling: their edit distance is at most a third of the
/// letters of the longer one, case and dashes not counted.
std::optional<std::string> nearest_word(std::string_view word, const std::vector<std::string>& words);
/// With the letters of ASCII in the other case; independent of the locale.
std::string in_lower_case(std::string_view text);
std::string in_upper_case(std::string_view text);
/// "0.7 s", "1200 s": a time limit as the user gave it.
std::string time_limit_text(double seconds);
/// "SIGSEGV (segmentation fault)"; "signal 77" when it has no name.
std::string signal_text(int signal);

}  // namespace ddl
