// Which rank is on which node, as PMI tells it: "(vector,(0,2,4))".
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::runtime {

/// The ranks of each node, of a job of size ranks. The text is "(vector" and blocks (first node, number of nodes, ranks on each
/// of them), which are dealt out again from the first as long as ranks are left. Error: it is something else. Pure.
Result<std::vector<std::vector<int>>> parse_process_mapping(std::string_view text, int size);

}  // namespace ddl::runtime
