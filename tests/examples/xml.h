// An XML parser for tests: checks that an SVG is well-formed, and returns its elements.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::test {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< character data directly inside, entities resolved
};

/// The elements of a document in the order of their start tags. Throws std::runtime_error with the position if tags
/// do not match, an attribute is repeated or unquoted, an entity is unknown, or there is not exactly one root.
/// Supports elements, attributes, character data and the five named entities, which the example uses.
std::vector<XmlElement> parse_xml(std::string_view document);

}  // namespace ddl::test
