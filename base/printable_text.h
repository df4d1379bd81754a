// Text of other programs for a person's terminal: the last lines that a rank wrote to standard error, without control
// sequences, as valid UTF-8.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddl {

// The little of UTF-8 that cutting and showing ranks' output needs (Unicode 15, table 3-7).

/// Number of bytes at the end of text, 0 to 3, that begin a character and could still become a valid one: where text
/// is cut before them, no character is cut. 0 for whatever is not UTF-8.
std::size_t incomplete_utf8_tail(std::string_view text);

/// Length of the valid character that text begins with; 0 if it begins with none.
std::size_t utf8_character_length(std::string_view text);

// The last lines that one rank wrote to standard error, for the report of its failure.

/// Sees all of the stream and keeps its end: at most kMaxLines lines of kMaxLineBytes. Pure.
class StderrTail {
 public:
  static constexpr std::size_t kMaxLines = 20;
  static constexpr std::size_t kMaxLineBytes = 1024;

  void append(std::string_view bytes);

  /// Oldest first, without line ends, safe to print and valid UTF-8 (see printable_line()). A line that "\r" wrote
  /// over appears as it was written last; a longer one is cut and ends with "..."; an unfinished last line counts.
  std::vector<std::string> lines() const;

 private:
  struct Line {
    std::string bytes;
    bool is_cut = false;
  };
  void append_within_line(std::string_view bytes);
  void end_line();

  std::deque<Line> lines_;
  Line current_;
  bool returned_ = false;  // the last byte was "\r": what comes next writes over the line
};

/// text with nothing in it that acts on a terminal: escape sequences (colours, titles, cursor) are dropped, other
/// control characters are shown ("^G"; C1 controls as "<U+009B>"), bytes that are not UTF-8 become "\xNN"; tab stays.
std::string printable_line(std::string_view text);
/// The same of each of its lines.
std::string printable_text(std::string_view text);

}  // namespace ddl
