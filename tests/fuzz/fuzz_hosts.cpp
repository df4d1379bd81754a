// Host lists and hostfiles with arbitrary text: the first byte selects which. Accepted names are safe arguments of
// ssh, and are unchanged after they are written and read again; all other text gives an error of one sentence.
#include <cstdint>
#include <set>
#include <string>

#include "fuzz/require.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"

namespace {

using ddl::launcher::AllocatedNode;
using Nodes = std::vector<AllocatedNode>;

std::string as_line(const AllocatedNode& node) {
  const bool is_ipv6 = node.name.find(':') != std::string::npos;
  std::string line = is_ipv6 ? "[" + node.name + "]" : node.name;
  if (node.slots) line += " slots=" + std::to_string(*node.slots);
  if (node.max_slots) line += " max_slots=" + std::to_string(*node.max_slots);
  if (node.user) line += " user=" + *node.user;
  if (node.port) line += " port=" + std::to_string(*node.port);
  if (!node.unused_binding.empty()) line += " binding=" + node.unused_binding;
  return line + "\n";
}

void check_nodes(const Nodes& nodes) {
  require(!nodes.empty() && nodes.size() <= ddl::launcher::kMaxHosts);
  std::set<std::string> keys;
  std::string written;
  for (const AllocatedNode& node : nodes) {
    require(ddl::launcher::check_host_name(node.name).has_value());
    require(!node.user || ddl::launcher::check_user_name(*node.user));
    require(!node.slots || (*node.slots >= 1 && *node.slots <= ddl::launcher::kMaxSlots));
    require(!node.max_slots || *node.max_slots >= node.slots.value_or(1));
    require(!node.port || (*node.port >= 1 && *node.port <= 65535));
    require(keys.insert(ddl::launcher::host_key(node.name)).second);
    written += as_line(node);
  }
  const auto again = ddl::launcher::parse_hostfile(written, "again");
  require(again && *again == nodes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto nodes =
      data[0] % 2 == 0 ? ddl::launcher::parse_host_list(text) : ddl::launcher::parse_hostfile(text, "f");
  if (nodes) {
    check_nodes(*nodes);
  } else {
    require_refusal(nodes.error());
  }
  const auto names = ddl::launcher::parse_host_names(text);
  if (!names) require_refusal(names.error());
  return 0;
}
