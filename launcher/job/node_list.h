// The nodes of an allocation while it is being read: the same host named twice is one node.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// Most hosts of one allocation; more is taken for a slip in a range.
inline constexpr std::size_t kMaxHosts = 65536;

class NodeList {
 public:
  /// Appends the node, or adds its slots to those of the node that has its name already. Error: of two that are the
  /// same host both must say how many slots, and agree on the user, the port, and whether there are max_slots; and
  /// kMaxHosts may be named at most, each time counted.
  Status add(AllocatedNode node);

  /// How many more hosts may be named.
  std::size_t room() const { return kMaxHosts - named_; }
  std::vector<AllocatedNode> take() && { return std::move(nodes_); }

 private:
  std::vector<AllocatedNode> nodes_;
  std::unordered_map<std::string, std::size_t> index_;  // by host_key
  std::size_t named_ = 0;
};

}  // namespace ddl::launcher
