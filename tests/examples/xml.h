// Just enough of XML to tell whether an SVG is well-formed and what is in it.
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

/// The elements of a document in the order of their start tags. Throws std::runtime_error, saying where, if tags do
/// not match, an attribute is given twice or is unquoted, an entity is unknown, or anything but one root is there.
/// Knows elements, attributes, character data and the five named entities: what the example writes.
std::vector<XmlElement> parse_xml(std::string_view document);

}  // namespace ddl::test
