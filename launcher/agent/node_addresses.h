// The network addresses of this machine.
#pragma once

#include <vector>

#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// In the kernel's order: IPv4 and IPv6 addresses of interfaces that are up and running. Left out are loopback, which
/// nobody else reaches, and link-local addresses, which mean another machine on every link. Empty where the kernel
/// does not tell.
std::vector<NodeAddress> node_addresses();

}  // namespace ddl::launcher
