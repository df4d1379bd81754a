#include "templates/yaml_tree.h"

#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace ddl::templates {

namespace {

constexpr std::size_t kDeepest = 8;

/// Thrown through the parser, which has no other way to be stopped.
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
    if (open_.size() == kDeepest) throw Refused{line_of(mark), "it is nested too deeply"};
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
    return refuse_line(name, line_of(error.mark), "no YAML: " + error.msg);
  }
  return builder.take();
}

}  // namespace ddl::templates
