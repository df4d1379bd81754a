#include "examples/xml.h"

#include <cctype>
#include <stdexcept>

namespace ddl::test {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view document) : rest_(document), size_(document.size()) {}

  std::vector<XmlElement> document() {
    blanks();
    element();
    blanks();
    if (!rest_.empty()) fail("something follows the root element");
    return std::move(elements_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("byte " + std::to_string(size_ - rest_.size()) + ": " + what);
  }

  bool skip(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void expect(std::string_view token) {
    if (!skip(token)) fail("expected " + std::string(token));
  }

  void blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }

  std::string name() {
    std::size_t length = 0;
    const auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':';
    };
    while (length < rest_.size() && is_name(rest_[length])) ++length;
    if (length == 0) fail("expected a name");
    std::string result(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return result;
  }

  /// Character data up to, and without, the given end.
  std::string characters(char end) {
    static const std::map<std::string_view, char> kEntities = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    std::string text;
    while (!rest_.empty() && rest_.front() != end) {
      if (rest_.front() == '<') fail("< where only text may be");
      if (rest_.front() == '&') {
        const auto entity = kEntities.find(rest_.substr(0, rest_.find(';') + 1));
        if (entity == kEntities.end()) fail("unknown entity");
        text += entity->second;
        rest_.remove_prefix(entity->first.size());
      } else {
        text += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    return text;
  }

  void element() {
    expect("<");
    const std::size_t index = elements_.size();
    elements_.push_back({name(), {}, ""});
    for (blanks(); !rest_.starts_with(">") && !rest_.starts_with("/>"); blanks()) {
      const std::string attribute = name();
      expect("=\"");
      if (!elements_[index].attributes.emplace(attribute, characters('"')).second)
        fail(attribute + " is given twice");
      expect("\"");
    }
    if (skip("/>")) return;
    expect(">");
    for (;;) {
      elements_[index].text += characters('<');
      if (rest_.starts_with("</")) break;
      element();
    }
    expect("</" + elements_[index].name + ">");
  }

  std::string_view rest_;
  std::size_t size_;
  std::vector<XmlElement> elements_;
};

}  // namespace

std::vector<XmlElement> parse_xml(std::string_view document) { return Parser(document).document(); }

}  // namespace ddl::test
