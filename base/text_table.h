// A table of text for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddl {

/// Rows of cells in columns with two blanks between them. A column whose cells are all empty is omitted, and no line
/// ends with blanks. A character of UTF-8 counts as one column wide, the attributes of a terminal ("\x1b[1m") as
/// none.
class TextTable {
 public:
  enum class Align { kLeft, kRight };  ///< of every column but the first, which is always flush left

  TextTable() = default;
  /// With a header row, and a line of dashes below it.
  explicit TextTable(std::vector<std::string> head) : has_head_(true) { add(std::move(head)); }

  /// A row may have fewer cells than others. after: text behind its last cell, which may be wider than any column.
  void add(std::vector<std::string> cells, std::string after = {}) {
    rows_.push_back({std::move(cells), std::move(after)});
  }
  /// Whether there is no row but the header.
  bool is_empty() const { return rows_.size() <= (has_head_ ? 1 : 0); }

  /// indent: before every line.
  std::string text(Align align = Align::kLeft, std::string_view indent = {}) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string after;
  };
  bool has_head_ = false;
  std::vector<Row> rows_;
};

}  // namespace ddl
