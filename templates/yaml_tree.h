// YAML as values that know their lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::templates {

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

}  // namespace ddl::templates
