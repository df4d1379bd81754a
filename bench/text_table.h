// A table of words for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ddl::bench {

/// Rows below a head. Every character counts as one column wide.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool is_empty() const { return rows_.size() == 1; }

  /// The first column is flush left, the others flush right.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ddl::bench
