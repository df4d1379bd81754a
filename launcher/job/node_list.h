// The nodes of an allocation while it is being read: the same host named twice is one node.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// Most hosts of one allocation; more is taken for a slip in a range.
inline constexpr std::size_t kMaxHosts = 65536;
/// How often hosts may be named in all: a PBS node file names one for each of its slots.
inline constexpr std::size_t kMaxTimesNamed = 1'000'000;

/// What it means that a host is named several times without slots: nothing certain, or a slot each time, as in the node
/// files of PBS.
enum class NamedAgain { kRefused, kIsSlot };

class NodeList {
 public:
  explicit NodeList(NamedAgain named_again) : named_again_(named_again) {}

  /// Appends the node, or adds its slots to those of the node that has its name already. Error: of two that are the
  /// same host both must say how many slots (or, with kIsSlot, neither), and they must agree on the user, the port, and whether
  /// there are max_slots; and there may be kMaxHosts at most, named kMaxTimesNamed times in all.
  Status add(AllocatedNode node);

  /// How many more hosts the next word may name.
  std::size_t room() const { return std::min(kMaxHosts, kMaxTimesNamed - named_); }
  /// The nodes. Where one was named several times without slots, as PBS's node files do, each time is a slot, also of
  /// the nodes that were named once without them.
  std::vector<AllocatedNode> take() &&;

 private:
  NamedAgain named_again_;
  std::vector<AllocatedNode> nodes_;
  std::vector<int> times_;                              // of each node: how often it was named
  std::unordered_map<std::string, std::size_t> index_;  // by host_key
  std::size_t named_ = 0;
};

}  // namespace ddl::launcher
