// What a C header declares, with its comments: enough of C for ddl.h. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/manual/document.h"

namespace ddl::cli {

/// A field of a struct, or a constant of an enumeration.
struct HeaderMember {
  std::string text;  ///< "double timeout_seconds", "DDL_OK = 0"
  Document comment;
  bool operator==(const HeaderMember&) const = default;
};

struct HeaderDeclaration {
  enum class Kind { kFunction, kType, kMacro };
  Kind kind = Kind::kFunction;
  std::string name;
  std::string text;  ///< on one line; of a struct or enumeration without its members
  std::vector<HeaderMember> members{};
};

/// Declarations that follow each other without an empty line or a comment between them, and the comment before the
/// first.
struct HeaderEntry {
  std::vector<HeaderDeclaration> declarations;
  Document comment;
};

/// The entries below a comment of its own, "/* Named tensors. ... */".
struct HeaderGroup {
  std::string heading;  ///< the comment's first sentence, without its period
  Document text;        ///< the rest of it
  std::vector<HeaderEntry> entries;
};

struct Header {
  Document introduction;  ///< the comment at its top
  std::vector<HeaderGroup> groups;
};

/// Reads up to "#ifndef DDL_NO_DEPRECATED", where the names of older versions begin.
Header read_header(std::string_view text);

/// The declaration broken into lines of at most width columns, as a prototype is.
std::string broken_prototype(std::string_view text, std::size_t width);

}  // namespace ddl::cli
