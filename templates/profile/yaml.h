// Reads YAML into a tree of nodes that know their line numbers, and reads the keys of a map into the fields of a
// struct. An unknown key, or a value of the wrong kind, is an error with file and line.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace ddl::templates {

// YAML as values that know their lines.

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                 ///< where it begins, from 1
  std::string text;             ///< of a scalar, unchanged
  std::vector<YamlNode> items;  ///< of a sequence; of a map key, value, key, value
};

/// The one document of a text; a null for an empty text. Pure. Refuses, besides text that is not YAML: several
/// documents, aliases (a few lines of them can stand for gigabytes), scalars with a zero byte, and nesting deeper
/// than eight. name: what errors call the text, as in "job.yaml:3: ...".
Result<YamlNode> parse_yaml(std::string_view text, std::string_view name);

// A map of YAML into the fields of a struct.

/// A key, and the function that reads its value. Errors of read need no file and line: read_fields() adds them.
struct YamlField {
  std::string_view key;
  std::function<Status(const YamlNode& value)> read;
};

/// Each key of the map goes to its field; fields without a key are unchanged. Error kInvalidArgument begins with
/// "file:line: ": a key without a field, a key that occurs twice, a node that is not a map, or a
/// value that a field does not accept.
/// file: what errors call the text.
Status read_fields(const YamlNode& map, std::string_view file, std::initializer_list<YamlField> fields);

/// The value of a text field: one word or sentence, not empty.
Result<std::string> yaml_text(const YamlNode& value);
/// An integer within both ends.
Result<std::int64_t> yaml_integer(const YamlNode& value, std::int64_t min, std::int64_t max);
Result<bool> yaml_bool(const YamlNode& value);
/// The texts of a list; each has one line.
Result<std::vector<std::string>> yaml_texts(const YamlNode& value);

inline auto into(std::string& target) {
  return [&target](const YamlNode& value) -> Status {
    auto text = yaml_text(value);
    if (!text) return fail(std::move(text.error()));
    target = *std::move(text);
    return {};
  };
}

inline auto into(std::vector<std::string>& target) {
  return [&target](const YamlNode& value) -> Status {
    auto texts = yaml_texts(value);
    if (!texts) return fail(std::move(texts.error()));
    target = *std::move(texts);
    return {};
  };
}

inline auto into(int& target, int min, int max) {
  return [&target, min, max](const YamlNode& value) -> Status {
    const auto number = yaml_integer(value, min, max);
    if (!number) return fail(number.error());
    target = static_cast<int>(*number);
    return {};
  };
}

inline auto into(bool& target) {
  return [&target](const YamlNode& value) -> Status {
    const auto flag = yaml_bool(value);
    if (!flag) return fail(flag.error());
    target = *flag;
    return {};
  };
}

/// The result of parse for the text: Result<T> parse(const std::string&).
template <class T, class Parse>
auto into(T& target, Parse parse) {
  return [&target, parse](const YamlNode& value) -> Status {
    auto text = yaml_text(value);
    if (!text) return fail(std::move(text.error()));
    auto parsed = parse(*text);
    if (!parsed) return fail(std::move(parsed.error()));
    target = *std::move(parsed);
    return {};
  };
}

}  // namespace ddl::templates
