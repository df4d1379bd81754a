// The last lines that one rank wrote to standard error, for the report of its failure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::launcher {

/// Sees all of the stream and keeps its end: at most kMaxLines lines of kMaxLineBytes. Pure.
class StderrTail {
 public:
  static constexpr std::size_t kMaxLines = 20;
  static constexpr std::size_t kMaxLineBytes = 1024;

  void append(std::string_view bytes);

  /// Oldest first, without line ends, safe to print and valid UTF-8 (see printable_line()). A line that "\r" wrote over
  /// appears as it was written last; a longer one is cut and ends with "..."; an unfinished last line counts.
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
/// control characters are shown ("^G"; C1 controls as "<U+009B>"), bytes that are no UTF-8 become "\xNN"; tab stays.
std::string printable_line(std::string_view text);
/// The same of each of its lines.
std::string printable_text(std::string_view text);

}  // namespace ddl::launcher
