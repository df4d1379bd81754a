#include "cli/manual/c_header.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"

namespace ddl::cli {
namespace {

constexpr std::string_view kEndOfHeader = "#ifndef DDL_NO_DEPRECATED";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\\'; }
bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (!is_blank(c)) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return std::string(trim(line));
}

std::string last_identifier(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_identifier(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_identifier(text[begin - 1])) --begin;
  return std::string(text.substr(begin, end - begin));
}

/// Takes the text up to and including what ends it.
std::string_view take_through(std::string_view& rest, std::string_view end) {
  const std::size_t found = rest.find(end);
  const std::size_t size = found == std::string_view::npos ? rest.size() : found + end.size();
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

/// The text up to a separator outside of comments and braces, without the separator.
std::string_view take_until(std::string_view& rest, char separator) {
  int depth = 0;
  std::size_t i = 0;
  for (; i < rest.size(); ++i) {
    if (rest.substr(i).starts_with("/*")) {
      i = std::min(rest.find("*/", i), rest.size() - 1) + 1;
    } else if (rest[i] == '{') {
      ++depth;
    } else if (rest[i] == '}') {
      --depth;
    } else if (rest[i] == separator && depth == 0) {
      break;
    }
  }
  const std::string_view taken = rest.substr(0, i);
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return taken;
}

/// The comment that begins in the rest of the line, as "/**<" does behind what it describes.
Document take_comment_behind(std::string_view& rest) {
  const std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  if (!rest.substr(begin).starts_with("/**<")) return {};
  rest.remove_prefix(begin);
  return read_comment(take_through(rest, "*/"));
}

std::vector<HeaderMember> members_of(std::string_view body, char separator) {
  std::vector<HeaderMember> members;
  while (true) {
    body.remove_prefix(std::min(body.find_first_not_of(" \n"), body.size()));
    if (body.empty()) return members;
    HeaderMember member;
    if (body.starts_with("/**")) {
      member.comment = read_comment(take_through(body, "*/"));
      body.remove_prefix(std::min(body.find_first_not_of(" \n"), body.size()));
    }
    // The comment of the last one may stand before the end, with no separator between.
    const std::size_t behind = body.find("/**<");
    const std::string_view text = take_until(body, separator);
    member.text = on_one_line(text.substr(0, text.find("/*")));
    if (text.find("/**<") != std::string_view::npos) {
      std::string_view comment = text.substr(std::min(behind, text.size()));
      member.comment = take_comment_behind(comment);
    } else if (Document comment = take_comment_behind(body); !comment.empty()) {
      member.comment = std::move(comment);
    }
    if (!member.text.empty()) members.push_back(std::move(member));
  }
}

HeaderDeclaration declaration_of(std::string_view text) {
  using Kind = HeaderDeclaration::Kind;
  const std::size_t open = text.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = text.rfind('}');
    const bool is_enumeration = text.starts_with("enum");
    const std::string name = last_identifier(text.substr(close));
    return {Kind::kType, name, is_enumeration ? "enum" : "struct " + name,
            members_of(text.substr(open + 1, close - open - 1), is_enumeration ? ',' : ';')};
  }
  constexpr std::string_view kExported = "DDL_API ";
  if (text.starts_with(kExported)) {
    std::string line = on_one_line(text.substr(kExported.size()));
    std::string name = last_identifier(line.substr(0, line.find('(')));
    return {Kind::kFunction, std::move(name), std::move(line)};
  }
  std::string line = on_one_line(text);
  const std::size_t pointer = line.find("(*");
  std::string name =
      last_identifier(pointer == std::string::npos ? line : line.substr(0, line.find(')', pointer)));
  return {Kind::kType, std::move(name), std::move(line)};
}

HeaderGroup group_of(std::string_view comment) {
  HeaderGroup group;
  group.text = read_comment(comment);
  if (group.text.empty()) return group;
  std::string& first = group.text.front().text;
  const std::size_t end = std::min(first.find('.'), first.size());
  group.heading = first.substr(0, end);
  first = std::string(trim(std::string_view(first).substr(std::min(end + 1, first.size()))));
  if (first.empty()) group.text.erase(group.text.begin());
  return group;
}

/// The lines of a directive; takes nothing from other text.
std::string_view take_directive(std::string_view& rest) {
  std::size_t end = rest.find('\n');
  while (end != std::string_view::npos && rest[end - 1] == '\\') end = rest.find('\n', end + 1);
  const std::string_view directive = rest.substr(0, end);
  rest.remove_prefix(std::min(end, rest.size()));
  return directive;
}

}  // namespace

Header read_header(std::string_view text) {
  Header header;
  std::string_view rest = text.substr(0, text.find(kEndOfHeader));
  // A comment of its own there explains what follows.
  if (text.size() != rest.size()) rest = rest.substr(0, rest.rfind("\n/* "));
  header.introduction = read_comment(take_through(rest, "*/"));
  constexpr std::string_view kBegin = "extern \"C\" {\n#endif\n";
  take_through(rest, kBegin);

  Document comment;
  bool joins = false;  // what follows belongs to the last entry
  while (!rest.empty()) {
    const std::size_t blanks = std::min(rest.find_first_not_of(" \n"), rest.size());
    if (rest.substr(0, blanks).find("\n\n") != std::string_view::npos) joins = false;
    rest.remove_prefix(blanks);
    if (rest.empty()) break;
    if (rest.starts_with("/**")) {
      comment = read_comment(take_through(rest, "*/"));
      joins = false;
      continue;
    }
    if (rest.starts_with("/*")) {
      header.groups.push_back(group_of(take_through(rest, "*/")));
      joins = false;
      continue;
    }
    HeaderDeclaration declaration;
    if (rest.starts_with('#')) {
      constexpr std::string_view kDefine = "#define ";
      const std::string_view directive = take_directive(rest);
      if (!directive.starts_with(kDefine)) continue;
      const std::string_view name = directive.substr(kDefine.size());
      declaration = {HeaderDeclaration::Kind::kMacro, std::string(name.substr(0, name.find_first_of(" (\n"))),
                     on_one_line(directive)};
    } else {
      declaration = declaration_of(take_until(rest, ';'));
      if (Document behind = take_comment_behind(rest); !behind.empty()) {
        comment = std::move(behind);
        joins = false;
      }
    }
    if (header.groups.empty()) header.groups.emplace_back();
    auto& entries = header.groups.back().entries;
    if (!joins || entries.empty()) entries.push_back({{}, std::exchange(comment, {})});
    entries.back().declarations.push_back(std::move(declaration));
    joins = true;
  }
  return header;
}

std::string broken_prototype(std::string_view text, std::size_t width) {
  std::string lines;
  std::string line;
  const auto parts = split(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string part(trim(parts[i]));
    part += i + 1 < parts.size() ? "," : ";";
    if (!line.empty() && line.size() + 1 + part.size() > width) {
      lines += line + "\n";
      line = "    " + part;
    } else {
      line += (line.empty() ? "" : " ") + part;
    }
  }
  return lines + line;
}

}  // namespace ddl::cli
