// The network addresses of this machine.
#pragma once

#include <vector>

#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// In the kernel's order: what may be offered to other nodes (net/address.h) of all interfaces. Empty where there is
/// nothing or the kernel does not tell.
std::vector<NodeAddress> node_addresses();

}  // namespace ddl::launcher
