// Reads YAML into a tree of nodes that know their line numbers, and reads the keys of a map into the fields of a struct.
// An unknown key, or a value of the wrong kind, is an error with file and line.
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
  std::string text;             ///< of a scalar, as it stands there
  std::vector<YamlNode> items;  ///< of a sequence; of a map key, value, key, value
};

/// The one document of a text; a null for an empty text. Pure. Refused besides what is no YAML: several documents,
/// aliases (a few lines of them can stand for gigabytes), scalars with a zero byte, and nesting deeper than eight.
/// name: what errors call the text, as in "job.yaml:3: ...".
Result<YamlNode> parse_yaml(std::string_view text, std::string_view name);

// A map of YAML into the fields of a struct.

/// One key and what takes its value. Errors of read need no place: read_fields() adds it.
struct YamlField {
  std::string_view key;
  std::function<Status(const YamlNode& value)> read;
};

/// Each key of the map goes to its field; keys that are not there leave theirs alone. Error kInvalidArgument begins with
/// "file:line: ": a key that no field has, one that stands twice, no map, or what a field does not take.
/// file: what errors call the text.
Status read_fields(const YamlNode& map, std::string_view file, std::initializer_list<YamlField> fields);

/// What a text field takes: one word or sentence, not empty.
Result<std::string> yaml_text(const YamlNode& value);
/// An integer within both ends.
Result<std::int64_t> yaml_integer(const YamlNode& value, std::int64_t least, std::int64_t most);
Result<bool> yaml_bool(const YamlNode& value);
/// Of a list each text, which has one line.
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

inline auto into(int& target, int least, int most) {
  return [&target, least, most](const YamlNode& value) -> Status {
    const auto number = yaml_integer(value, least, most);
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

/// What parse makes of the text: Result<T> parse(const std::string&).
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
