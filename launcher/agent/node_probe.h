// What this machine is, as far as placing ranks and --check-hosts need it.
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// Asks the kernel; takes a few milliseconds. Never fails: what cannot be read gets a safe value.
NodeFacts probe_node();

/// The name of this machine (gethostname).
std::string hostname();

/// Distinct cores among CPUs, from the text of each CPU's thread_siblings_list ("0,64"); an empty text counts by itself.
int count_cores(const std::vector<std::string>& sibling_lists);

}  // namespace ddl::launcher
