// Reads YAML into a tree of nodes that know their line numbers, and reads the keys of a map into the fields of a
// struct. An unknown key, or a value of the wrong kind, is an error with file and line.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
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

/// How a value is read, and which values that accepts. Errors of read need no file and line: read_fields() adds them.
struct YamlReader {
  std::function<Status(const YamlNode& value)> read;
  std::string accepts;  ///< for people: "number from 1 to 9"; words of the file are in backquotes

  YamlReader(std::string what, std::function<Status(const YamlNode&)> how)
      : read(std::move(how)), accepts(std::move(what)) {}
  template <class Read>
    requires std::is_invocable_r_v<Status, Read, const YamlNode&>
  YamlReader(Read how)  // NOLINT(google-explicit-constructor): a table of fields names the function alone
      : read(std::move(how)) {}
};

/// A key, the reader of its value, and what a document says of it.
struct YamlField {
  std::string_view key;
  YamlReader value;
  std::string_view meaning{};
  std::string_view default_value{};  ///< "": there is none, or it is not worth a word
};

/// Each key of the map goes to its field; fields without a key are unchanged. Error kInvalidArgument begins with
/// "file:line: ": a key without a field, a key that occurs twice, a node that is not a map, or a
/// value that a field does not accept.
/// file: what errors call the text.
Status read_fields(const YamlNode& map, std::string_view file, const std::vector<YamlField>& fields);

/// The value of a text field: one word or sentence, not empty.
Result<std::string> yaml_text(const YamlNode& value);
/// An integer within both ends.
Result<std::int64_t> yaml_integer(const YamlNode& value, std::int64_t min, std::int64_t max);
Result<bool> yaml_bool(const YamlNode& value);
/// The texts of a list; each has one line.
Result<std::vector<std::string>> yaml_texts(const YamlNode& value);

inline YamlReader into(std::string& target) {
  return {"text", [&target](const YamlNode& value) -> Status {
            DDL_ASSIGN(text, yaml_text(value));
            target = std::move(text);
            return {};
          }};
}

inline YamlReader into(std::vector<std::string>& target) {
  return {"list of texts", [&target](const YamlNode& value) -> Status {
            DDL_ASSIGN(texts, yaml_texts(value));
            target = std::move(texts);
            return {};
          }};
}

inline YamlReader into(int& target, int min, int max) {
  return {"number from " + std::to_string(min) + " to " + std::to_string(max),
          [&target, min, max](const YamlNode& value) -> Status {
            DDL_ASSIGN(number, yaml_integer(value, min, max));
            target = static_cast<int>(number);
            return {};
          }};
}

inline YamlReader into(bool& target) {
  return {"`true` or `false`", [&target](const YamlNode& value) -> Status {
            DDL_ASSIGN(flag, yaml_bool(value));
            target = flag;
            return {};
          }};
}

/// The result of parse for the text: Result<T> parse(const std::string&).
template <class T, class Parse>
YamlReader into(std::string accepts, T& target, Parse parse) {
  return {std::move(accepts), [&target, parse](const YamlNode& value) -> Status {
            DDL_ASSIGN(text, yaml_text(value));
            DDL_ASSIGN(parsed, parse(text));
            target = std::move(parsed);
            return {};
          }};
}

/// One of the words, each with its value.
template <class T>
YamlReader into_choice(T& target, std::initializer_list<std::pair<std::string_view, T>> choices) {
  std::string accepts, words;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string word(choices.begin()[i].first);
    accepts += (i == 0 ? "`" : i + 1 == choices.size() ? " or `" : ", `") + word + "`";
    words += (i == 0 ? "" : ", ") + word;
  }
  return {accepts, [&target, words, choices = std::vector(choices)](const YamlNode& value) -> Status {
            DDL_ASSIGN(text, yaml_text(value));
            for (const auto& [word, meaning] : choices) {
              if (word != text) continue;
              target = meaning;
              return {};
            }
            return refuse("'" + text + "' is not one of " + words);
          }};
}

}  // namespace ddl::templates
