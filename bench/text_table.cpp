#include "bench/text_table.h"

#include <algorithm>
#include <string_view>

namespace ddl::bench {
namespace {

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::string line;
    for (std::size_t i = 0; i < rows_[row].size(); ++i) {
      const std::string gap(widths[i] - width(rows_[row][i]), ' ');
      line += i == 0 ? "  " + rows_[row][i] + gap : "  " + gap + rows_[row][i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (row > 0) continue;
    std::size_t total = 2 * widths.size() - 2;
    for (const std::size_t column : widths) total += column;
    text += "  " + std::string(total, '-') + "\n";
  }
  return text;
}

}  // namespace ddl::bench
