#include "base/text_table.h"

#include <algorithm>

namespace ddl {

namespace {

constexpr std::string_view kGap = "  ";

/// Columns that the text takes on a terminal.
std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\x1b[")) {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

}  // namespace

std::string TextTable::text(Align align, std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const Row& row : rows_) {
    widths.resize(std::max(widths.size(), row.cells.size()));
    for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], width(row.cells[i]));
  }
  std::string text;
  for (const Row& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!line.empty()) line += kGap;
      const std::string padding(widths[i] - width(row.cells[i]), ' ');
      line += i > 0 && align == Align::kRight ? padding + row.cells[i] : row.cells[i] + padding;
    }
    if (!row.after.empty()) line += (line.empty() ? "" : std::string(kGap)) + row.after;
    if (!line.empty()) line.insert(0, indent);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (!has_head_ || &row != &rows_.front()) continue;
    std::size_t total = 0;
    for (const std::size_t column : widths) total += column > 0 ? column + kGap.size() : 0;
    text += std::string(indent) + std::string(total - std::min(total, kGap.size()), '-') + "\n";
  }
  return text;
}

}  // namespace ddl
