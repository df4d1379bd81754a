#include "templates/profile/yaml.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace ddl::templates {

namespace {

constexpr std::size_t kMaxDepth = 8;

/// Thrown through the parser, which cannot be stopped in another way.
struct Refused {
  int line;
  std::string sentence;
};

int line_of(const YAML::Mark& mark) { return mark.is_null() ? 1 : mark.line + 1; }

/// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{line_of(mark), "a second document begins"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    add({YamlNode::Kind::kNull, line_of(mark), "", {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{line_of(mark), "aliases (*name) are not understood"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (value.find('\0') != std::string::npos) throw Refused{line_of(mark), "the text has a zero byte"};
    add({YamlNode::Kind::kScalar, line_of(mark), value, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kSequence, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  void open(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (open_.size() == kMaxDepth) throw Refused{line_of(mark), "it is nested too deeply"};
    open_.push_back({kind, line_of(mark), "", {}});
  }
  void close() {
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }
  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().items.push_back(std::move(node));
    }
  }

  YamlNode root_;
  std::vector<YamlNode> open_;  // sequences and maps that have not ended, outermost first
  int documents_ = 0;
};

tl::unexpected<Error> refuse_line(std::string_view name, int line, const std::string& sentence) {
  return fail(ErrorCode::kInvalidArgument, std::string(name) + ":" + std::to_string(line) + ": " + sentence);
}

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, std::string_view name) {
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) continue;
  } catch (const Refused& refused) {
    return refuse_line(name, refused.line, refused.sentence);
  } catch (const YAML::Exception& error) {
    return refuse_line(name, line_of(error.mark), "not valid YAML: " + error.msg);
  }
  return builder.take();
}

namespace {

using Kind = YamlNode::Kind;

std::string place(std::string_view file, int line) {
  return std::string(file) + ":" + std::to_string(line) + ": ";
}

std::string keys_of(const std::vector<YamlField>& fields) {
  std::vector<std::string> keys;
  for (const YamlField& field : fields) keys.emplace_back(field.key);
  return join(keys, ", ");
}

}  // namespace

Status read_fields(const YamlNode& map, std::string_view file, const std::vector<YamlField>& fields) {
  if (map.kind != Kind::kMap)
    return refuse(place(file, map.line) + "keys with values are expected here: " + keys_of(fields));
  std::set<std::string> seen;
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const YamlNode& key = map.items[i];
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const YamlField& one) { return one.key == key.text; });
    if (key.kind != Kind::kScalar || field == fields.end())
      return refuse(place(file, key.line) + "unknown key " + shell_quote(key.text) + "; the keys here are " +
                    keys_of(fields));
    if (!seen.insert(key.text).second) return refuse(place(file, key.line) + key.text + " occurs twice");
    if (auto read = field->value.read(map.items[i + 1]); !read) {
      // An error of an inner map already has its file and line.
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

Result<std::int64_t> yaml_integer(const YamlNode& value, std::int64_t min, std::int64_t max) {
  const auto number = value.kind == Kind::kScalar ? parse_integer(value.text) : std::nullopt;
  if (!number || *number < min || *number > max)
    return refuse("it takes a number from " + std::to_string(min) + " to " + std::to_string(max));
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
