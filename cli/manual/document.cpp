#include "cli/manual/document.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ddl::cli {
namespace {

using Kind = Block::Kind;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// "see [the guide](x.md)" as "see the guide", "x ([guide](x.md))" as "x", and "\|" as "|".
std::string without_links(std::string_view text) {
  std::string plain;
  bool is_literal = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '|') continue;
    if (text[i] == '`') is_literal = !is_literal;
    if (text[i] == '[' && !is_literal) {
      const std::size_t end = text.find("](", i);
      const std::size_t close = end == std::string_view::npos ? end : text.find(')', end);
      const bool is_pointer = i > 0 && text[i - 1] == '(' && close != std::string_view::npos &&
                              text.substr(close + 1).starts_with(')');
      if (is_pointer) {  // " ([guide](x.md))"
        plain.resize(plain.find_last_not_of(" (") + 1);
        i = close + 1;
        continue;
      }
      if (close != std::string_view::npos) {
        plain += text.substr(i + 1, end - i - 1);
        i = close;
        continue;
      }
    }
    plain += text[i];
  }
  return plain;
}

/// The cells of a row of a table; "\|" does not end one.
std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells(1);
  row.remove_prefix(1);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '|' && row[i - (i > 0 ? 1 : 0)] != '\\') {
      cells.emplace_back();
    } else {
      cells.back() += row[i];
    }
  }
  cells.pop_back();  // after the last bar
  for (std::string& cell : cells) cell = without_links(trim(cell));
  return cells;
}

/// The columns before the text of a line in a comment, of which a star in the margin is one.
std::size_t indent_of(std::string_view line) {
  std::size_t i = std::min(line.find_first_not_of(' '), line.size());
  if (i < line.size() && line[i] == '*' && (i + 1 == line.size() || line[i + 1] == ' '))
    i = std::min(line.find_first_not_of(' ', i + 1), line.size());
  return i;
}

void append(Document& blocks, bool& continues, Kind kind, std::string_view text) {
  if (continues && !blocks.empty()) {
    blocks.back().text += (blocks.back().text.empty() ? "" : " ") + std::string(text);
    return;
  }
  blocks.push_back({kind, std::string(text)});
  continues = true;
}

}  // namespace

Document read_markdown(std::string_view text) {
  Document blocks;
  bool continues = false;  // the next line belongs to the last block
  bool is_code = false;
  int row = 0;  // of a table
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view content = trim(line);
    if (content.starts_with("```")) {
      is_code = !is_code;
      if (is_code) blocks.push_back({Kind::kCode, ""});
      continues = false;
      continue;
    }
    if (is_code) {
      blocks.back().text += (blocks.back().text.empty() ? "" : "\n") + std::string(line);
      continue;
    }
    if (!content.starts_with('|')) row = 0;
    if (content.empty()) {
      continues = false;
    } else if (content.starts_with('#')) {
      const std::size_t depth = std::min(content.find_first_not_of('#'), content.size());
      blocks.push_back(
          {Kind::kHeading, without_links(trim(content.substr(depth))), "", static_cast<int>(depth)});
      continues = false;
    } else if (content.starts_with('|')) {
      if (++row <= 2) continue;  // the heading, and the line below it
      const auto cells = cells_of(content);
      Block item{Kind::kItem, cells.size() > 1 ? cells[1] : "", cells.front()};
      if (cells.size() > 2 && !cells[2].empty()) item.text += " (default: " + cells[2] + ")";
      blocks.push_back(std::move(item));
      continues = false;
    } else if (content.starts_with("- ")) {
      continues = false;
      append(blocks, continues, Kind::kBullet, content.substr(2));
    } else {
      append(blocks, continues, Kind::kParagraph, content);
    }
  }
  // A link may be broken over two lines.
  for (Block& block : blocks) {
    if (block.kind == Kind::kParagraph || block.kind == Kind::kBullet) block.text = without_links(block.text);
  }
  return blocks;
}

Document part_of(const Document& document, std::string_view heading) {
  auto begin = std::find_if(document.begin(), document.end(), [&](const Block& block) {
    return block.kind == Kind::kHeading && block.text == heading;
  });
  if (begin == document.end()) return {};
  const int depth = begin->depth;
  const auto end = std::find_if(++begin, document.end(), [&](const Block& block) {
    return block.kind == Kind::kHeading && block.depth <= depth;
  });
  return {begin, end};
}

namespace {

/// "ddl_init() fails with DDL_OK" with both names in backquotes, and "*result" and "size*count", whose stars would
/// otherwise begin another font.
std::string with_names_marked(std::string_view text) {
  std::string marked;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (is_name(text[end]) || text[end] == '*')) ++end;
    std::string word(text.substr(i, std::max<std::size_t>(end - i, 1)));
    i += word.size();
    const bool has_star = word.find('*') != std::string::npos;
    if (word.starts_with("ddl_") || word.starts_with("DDL_") || (has_star && word.size() > 1)) {
      if (text.substr(i).starts_with("()")) {
        word += "()";
        i += 2;
      }
      marked += "`" + word + "`";
    } else {
      marked += word;
    }
  }
  return marked;
}

}  // namespace

Document read_comment(std::string_view text) {
  Document blocks;
  bool continues = false;
  std::size_t item_indent = 0;  // of the last item, 0: none
  for (std::string_view line : split(text, '\n')) {
    if (const std::size_t open = line.find("/*"); open != std::string_view::npos) {
      line.remove_prefix(std::min(line.find(' ', open), line.size()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
    line = line.substr(0, line.find("*/"));
    const std::size_t indent = indent_of(line);
    const std::string content = with_names_marked(trim(line.substr(indent)));
    constexpr std::size_t kDeeper = 5;  // than " *  text"
    const std::size_t quote = content.starts_with('"') ? content.find('"', 1) : std::string::npos;
    const bool is_item = indent >= kDeeper && quote != std::string::npos &&
                         std::string_view(content).substr(quote + 1).starts_with("  ");
    if (content.empty()) {
      continues = false;
      item_indent = 0;
    } else if (content.starts_with("- ")) {
      continues = false;
      append(blocks, continues, Kind::kBullet, content.substr(2));
    } else if (is_item) {
      blocks.push_back({Kind::kItem, std::string(trim(std::string_view(content).substr(quote + 1))),
                        "`" + content.substr(0, quote + 1) + "`"});
      item_indent = indent;
      continues = true;
    } else {
      if (item_indent > 0 && indent <= item_indent) {
        continues = false;
        item_indent = 0;
      }
      append(blocks, continues, Kind::kParagraph, content);
    }
  }
  return blocks;
}

}  // namespace ddl::cli
