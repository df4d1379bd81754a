#include "templates/yaml_fields.h"

#include <algorithm>
#include <set>
#include <vector>

namespace ddl::templates {
namespace {

using Kind = YamlNode::Kind;

std::string place(std::string_view file, int line) {
  return std::string(file) + ":" + std::to_string(line) + ": ";
}

std::string keys_of(std::initializer_list<YamlField> fields) {
  std::vector<std::string> keys;
  for (const YamlField& field : fields) keys.emplace_back(field.key);
  return join(keys, ", ");
}

}  // namespace

Status read_fields(const YamlNode& map, std::string_view file, std::initializer_list<YamlField> fields) {
  if (map.kind != Kind::kMap)
    return refuse(place(file, map.line) + "here stand keys with values: " + keys_of(fields));
  std::set<std::string> seen;
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const YamlNode& key = map.items[i];
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const YamlField& one) { return one.key == key.text; });
    if (key.kind != Kind::kScalar || field == fields.end())
      return refuse(place(file, key.line) + "unknown key " + shell_quote(key.text) + "; here stand " +
                    keys_of(fields));
    if (!seen.insert(key.text).second) return refuse(place(file, key.line) + key.text + " stands here twice");
    if (auto read = field->read(map.items[i + 1]); !read) {
      // What a map within has found has its place already.
      const std::string sentence = read.error().message();
      const bool has_place = sentence.starts_with(std::string(file) + ":");
      return refuse(has_place ? sentence : place(file, key.line) + key.text + ": " + sentence);
    }
  }
  return {};
}

Result<std::string> yaml_text(const YamlNode& value) {
  if (value.kind != Kind::kScalar || value.text.empty()) return refuse("it takes one text");
  return value.text;
}

Result<std::int64_t> yaml_integer(const YamlNode& value, std::int64_t least, std::int64_t most) {
  const auto number = value.kind == Kind::kScalar ? parse_integer(value.text) : std::nullopt;
  if (!number || *number < least || *number > most)
    return refuse("it takes a number from " + std::to_string(least) + " to " + std::to_string(most));
  return *number;
}

Result<bool> yaml_bool(const YamlNode& value) {
  if (value.kind == Kind::kScalar && (value.text == "true" || value.text == "false"))
    return value.text == "true";
  return refuse("it takes true or false");
}

Result<std::vector<std::string>> yaml_texts(const YamlNode& value) {
  if (value.kind != Kind::kSequence) return refuse("it takes a list of texts");
  std::vector<std::string> texts;
  for (const YamlNode& item : value.items) {
    auto text = yaml_text(item);
    if (!text || text->find('\n') != std::string::npos)
      return refuse("each item of its list is a text on one line");
    texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace ddl::templates
