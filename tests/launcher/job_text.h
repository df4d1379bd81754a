// Nodes as one line, for comparing.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/allocation.h"

namespace ddl::launcher::test {

/// "me@a:2 b:1,max=4,port=22 c"
inline std::string text_of(const std::vector<AllocatedNode>& nodes) {
  std::string text;
  for (const AllocatedNode& node : nodes) {
    if (!text.empty()) text += ' ';
    if (node.user) text += *node.user + "@";
    text += node.name;
    if (node.slots) text += ":" + std::to_string(*node.slots);
    if (node.max_slots) text += ",max=" + std::to_string(*node.max_slots);
    if (node.port) text += ",port=" + std::to_string(*node.port);
  }
  return text;
}

}  // namespace ddl::launcher::test
