#include "templates/profile/yaml.h"

#include "base/text.h"
#include "support/catch.h"

using ddl::templates::parse_yaml;
using ddl::templates::YamlNode;

namespace {

/// "{a@1:b@1, c@2:[d@2]}"
std::string text_of(const YamlNode& node) {
  const std::string line = "@" + std::to_string(node.line);
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "null" + line;
    case YamlNode::Kind::kScalar: return node.text + line;
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) parts.push_back(text_of(item));
      return "[" + ddl::join(parts, ", ") + "]";
    case YamlNode::Kind::kMap:
      for (std::size_t i = 0; i < node.items.size(); i += 2) {
        parts.push_back(text_of(node.items[i]) + ":" + text_of(node.items[i + 1]));
      }
      return "{" + ddl::join(parts, ", ") + "}";
  }
  return "";
}

std::string tree(std::string_view text) {
  const auto node = parse_yaml(text, "f.yaml");
  return node ? text_of(*node) : "error: " + node.error().message();
}

}  // namespace

TEST_CASE("every value knows its line") {
  CHECK(tree("a: 1\nb:\n  c: x y\n  d: [1, 2]\n# e\nf:\n- g\n- h\n") ==
        "{a@1:1@1, b@2:{c@3:x y@3, d@4:[1@4, 2@4]}, f@6:[g@7, h@8]}");
  CHECK(tree("a:\nb: ~\nc: null\nd: \"null\"\n") ==
        "{a@1:null@2, b@2:null@2, c@3:null@3, d@4:null@4}");  // nothing is found where something else begins
  CHECK(tree("a: 0x10\nb: 'it''s'\nc: \"x\\ty\"") == "{a@1:0x10@1, b@2:it's@2, c@3:x\ty@3}");
  CHECK(tree("a: 1\r\nb: 2\r\n") == "{a@1:1@1, b@2:2@2}");
}

TEST_CASE("an empty text is a null") {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    INFO(text);
    const auto node = parse_yaml(text, "f");
    REQUIRE(node);
    CHECK(node->kind == YamlNode::Kind::kNull);
  }
}

TEST_CASE("text that is not YAML is refused with its line") {
  CHECK_THAT(tree("a: 1\nb: [1, 2\n"),
             Catch::StartsWith("error: f.yaml:") && Catch::Contains("not valid YAML"));
  CHECK_THAT(tree("a: 1\n b: 2\n"), Catch::StartsWith("error: f.yaml:2: not valid YAML"));
  CHECK_THAT(tree("\ta: 1\n"), Catch::Contains("not valid YAML"));
}

TEST_CASE("ambiguous or dangerous YAML is refused") {
  CHECK(tree("a: 1\n---\nb: 2\n") == "error: f.yaml:2: a second document begins");
  CHECK(tree("a: &x 1\nb: *x\n") == "error: f.yaml:2: aliases (*name) are not understood");
  CHECK(tree("a: \"x\\0y\"\n") == "error: f.yaml:1: the text has a zero byte");
  CHECK(tree("[[[[[[[[1]]]]]]]]").starts_with("[[[[[[[["));
  CHECK(tree("[[[[[[[[[1]]]]]]]]]") == "error: f.yaml:1: it is nested too deeply");
  CHECK(tree(std::string(100'000, '[')) == "error: f.yaml:1: it is nested too deeply");
  CHECK_THAT(tree(std::string(100'000, '{')), Catch::Contains("error: f.yaml:1"));
}
