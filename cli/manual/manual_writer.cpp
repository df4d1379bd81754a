#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/manual/document.h"
#include "contract/version.h"

namespace ddl::cli {
namespace {

/// The characters that roff would take for its own, or replace by others: man shows a plain dash as a hyphen, and
/// quotes as curved ones, and neither can be typed again.
std::string_view roff_escape(char c) {
  switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    case '"': return "\\(dq";
    default: return "";
  }
}

/// One character of UTF-8 from its first byte on, as roff names it: "\[u00D7]"; advances i to its last byte.
std::string roff_character(std::string_view text, std::size_t& i) {
  const auto first = static_cast<unsigned char>(text[i]);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  std::uint32_t code = first & (0x3FU >> more);
  for (int k = 0; k < more && i + 1 < text.size(); ++k)
    code = code << 6U | (static_cast<unsigned char>(text[++i]) & 0x3FU);
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string digits;
  for (; code > 0 || digits.size() < 4; code >>= 4U) digits.insert(digits.begin(), kDigits[code & 0xFU]);
  return "\\[u" + digits + "]";
}

/// Text without fonts. A line that begins with a dot or a quote would be a request.
std::string roff_text(std::string_view text, bool begins_line) {
  std::string escaped = begins_line && text.starts_with('.') ? "\\&" : "";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) {
      escaped += roff_character(text, i);
    } else if (const std::string_view escape = roff_escape(text[i]); !escape.empty()) {
      escaped += escape;
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

/// Where the font that begins at this mark ends: "*N*" is italic, but a star before or after a blank is a star.
std::size_t end_of_font(std::string_view text, std::size_t begin) {
  const char mark = text[begin];
  const std::size_t end = text.find(mark, begin + 1);
  if (end == std::string_view::npos || end == begin + 1) return std::string_view::npos;
  if (mark == '*' && (text[begin + 1] == ' ' || text[end - 1] == ' ')) return std::string_view::npos;
  return end;
}

/// Prose on one line.
std::string roff_prose(std::string_view text) {
  std::string line;
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '`' && text[i] != '*') continue;
    const std::size_t end = end_of_font(text, i);
    if (end == std::string_view::npos) continue;
    line += roff_text(text.substr(plain, i - plain), line.empty());
    line += (text[i] == '`' ? "\\fB" : "\\fI") + roff_text(text.substr(i + 1, end - i - 1), false) + "\\fR";
    i = end;
    plain = end + 1;
  }
  return line + roff_text(text.substr(plain), line.empty());
}

}  // namespace

ManualWriter::ManualWriter(std::string_view name, int chapter, std::string_view manual)
    : page_(".TH " + roff_text(in_upper_case(name), false) + " " + std::to_string(chapter) +
            " \"\" \"ddlrun " + contract::kVersion + "\" \"" + std::string(manual) + "\"\n" +
            // No hyphenation, which would put dashes into names, and no blanks to fill lines.
            ".nh\n.ad l\n") {}

void ManualWriter::section(std::string_view heading) {
  page_ += ".SH " + roff_text(in_upper_case(heading), false) + "\n";
}
void ManualWriter::subsection(std::string_view heading) { page_ += ".SS " + roff_prose(heading) + "\n"; }
void ManualWriter::paragraph(std::string_view prose) { page_ += ".PP\n" + roff_prose(prose) + "\n"; }
void ManualWriter::bullet(std::string_view prose) { page_ += ".IP \\(bu 2\n" + roff_prose(prose) + "\n"; }

void ManualWriter::item(std::string_view tag, std::string_view text) {
  page_ += ".TP 7\n" + roff_prose(tag) + "\n";
  if (!text.empty()) page_ += roff_prose(text) + "\n";
}

void ManualWriter::code(std::string_view lines) {
  page_ += ".PP\n.RS 4\n.nf\n";
  for (const std::string_view line : split(lines, '\n'))
    page_ += line.empty() ? ".sp\n" : roff_text(line, true) + "\n";
  page_ += ".fi\n.RE\n";
}

void ManualWriter::blocks(const Document& document) {
  for (const Block& block : document) {
    switch (block.kind) {
      case Block::Kind::kHeading: subsection(block.text); break;
      case Block::Kind::kParagraph: paragraph(block.text); break;
      case Block::Kind::kBullet: bullet(block.text); break;
      case Block::Kind::kItem: item(block.tag, block.text); break;
      case Block::Kind::kCode: code(block.text); break;
    }
  }
}

void ManualWriter::begin_inner() { page_ += ".RS\n"; }
void ManualWriter::end_inner() { page_ += ".RE\n"; }

void ManualWriter::see_also(const std::vector<std::pair<std::string_view, int>>& pages) {
  section("SEE ALSO");
  for (const auto& [name, chapter] : pages) {
    page_ += ".BR " + roff_text(name, false) + " (" + std::to_string(chapter) + ")";
    page_ += &name == &pages.back().first ? "\n" : ",\n";
  }
}

}  // namespace ddl::cli
