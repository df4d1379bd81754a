// --check-build of several hosts, beside each other.
#pragma once

#include <string>
#include <vector>

#include "cli/check_build/capability_json.h"

namespace ddl::cli {

/// horovodrun's boxes, "[X]" what every host can use, "[ ]" what none can, "[/]" what some can; then where hosts differ, and
/// why what none can is empty. Pure; all hosts have the boxes of the first, in its order.
std::string check_build_hosts_text(const std::vector<HostCapabilities>& hosts);

}  // namespace ddl::cli
