#include "launcher/plan/server_addresses.h"

#include <algorithm>
#include <map>

namespace ddl::launcher {
namespace {

bool may_use(const JobSpec& spec, const NodeAddress& address) {
  return spec.network_interfaces.empty() ||
         std::find(spec.network_interfaces.begin(), spec.network_interfaces.end(), address.interface) !=
             spec.network_interfaces.end();
}

/// A node's first address that the job may use, IPv4 before IPv6 because not every program accepts an IPv6 address;
/// null: there is none.
const NodeAddress* first_address(const JobSpec& spec, const NodeFacts& facts) {
  for (const int family : {4, 6}) {
    for (const NodeAddress& address : facts.addresses) {
      if (address.family == family && may_use(spec, address)) return &address;
    }
  }
  return nullptr;
}

int held_port(const NodeFacts& facts, int index, int otherwise) {
  return index < std::ssize(facts.held_ports) ? facts.held_ports[index] : otherwise;
}

}  // namespace

std::string node_address(const JobSpec& spec, const Placement& placement, int node, const NodeFacts& facts) {
  if (placement.nodes.size() == 1) return facts.master_address;
  const NodeAddress* const address = first_address(spec, facts);
  return address != nullptr ? address->address : placement.nodes[node].name;
}

ServersOfRank0 servers_of_rank_0(const JobSpec& spec, const Placement& placement, const NodeFacts& facts) {
  // A node without a free port has none for others either.
  constexpr int kTorchDefault = 29500, kJaxDefault = 61440;
  return {node_address(spec, placement, 0, facts), held_port(facts, 0, kTorchDefault),
          held_port(facts, 1, kJaxDefault)};
}

std::string host_and_port(const std::string& address, int port) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

int ports_for_ranks(Framework framework, int local_ranks) {
  return framework == Framework::kTensorflow ? local_ranks : 0;
}

std::vector<std::string> rank_addresses(const JobSpec& spec, const Placement& placement,
                                        const std::vector<NodeFacts>& facts) {
  std::vector<std::string> addresses;
  for (const RankPlacement& rank : placement.ranks) {
    const NodeFacts& node = facts[rank.node];
    const int port = held_port(node, kPortsOfRank0 + rank.local_rank, 0);
    addresses.push_back(port == 0 ? std::string(kUnknownUntilLaunch)
                                  : host_and_port(node_address(spec, placement, rank.node, node), port));
  }
  return addresses;
}

std::vector<std::string> horovod_hostnames(const Placement& placement, const std::vector<NodeFacts>& facts) {
  std::map<std::string, int> count;
  for (const NodeFacts& one : facts) ++count[one.hostname];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < facts.size(); ++i)
    names.push_back(count[facts[i].hostname] == 1 || facts[i].hostname == kUnknownUntilLaunch
                        ? facts[i].hostname
                        : placement.nodes[i].name);
  return names;
}

std::string connecting_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node) {
  const auto& places = spec.first_placements;
  const bool has_other_hosts = !places.empty() && places.front().local_size < places.front().size;
  if (placement.nodes.size() == 1 && !has_other_hosts) return "lo";
  const NodeAddress* const address = first_address(spec, node);
  return address == nullptr ? "" : address->interface;
}

std::string gloo_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node) {
  const bool must_be_told = node.hostname_is_loopback || !spec.network_interfaces.empty();
  return placement.nodes.size() == 1 || !must_be_told ? "" : connecting_interface(spec, placement, node);
}

}  // namespace ddl::launcher
