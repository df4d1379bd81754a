// The facts about this machine that placement and --check-hosts need: CPUs, memory, limits, free disk space,
// network addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/node_facts.h"

namespace ddl::launcher {

/// All facts. Asks the kernel; takes a few milliseconds. Never fails: a fact that cannot be read gets a safe value.
NodeFacts probe_node();

/// The name of this machine (gethostname).
std::string hostname();

/// Whether the text of /etc/hosts gives a name to an address of the loopback. The first line with the name counts.
bool is_loopback_in(const std::string& hosts, const std::string& name);

/// Distinct cores among CPUs, from the text of each CPU's thread_siblings_list ("0,64"); an empty text counts by
/// itself.
int count_cores(const std::vector<std::string>& sibling_lists);

/// The network addresses of this machine that may be offered to other nodes (net/address.h), of all interfaces, in
/// the kernel's order. Empty if there are none or they cannot be read.
std::vector<NodeAddress> node_addresses();

// Resources that a job may exhaust: memory, limits, disk space.

struct NodeMemory {
  std::int64_t total_bytes = 0;      ///< 0: unknown
  std::int64_t available_bytes = 0;  ///< 0: unknown
};

/// From the text of /proc/meminfo (proc(5)). Pure.
NodeMemory parse_meminfo(std::string_view text);
NodeMemory node_memory();

/// The soft limit of setrlimit(2)'s resource; -1: none.
std::int64_t soft_limit(int resource);

/// Bytes that this user may still write in the file system of a directory; -1: they cannot be read.
std::int64_t free_bytes(const std::string& directory);

/// The path of the libddl in the library folder beside this program, links resolved; "": there is none.
std::string installed_libddl();
/// The folder of the package horovod beside this program; "": there is none.
std::string installed_horovod();

}  // namespace ddl::launcher
