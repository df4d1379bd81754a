// PMI-1's barriers of a job: where the ranks of all nodes meet, and learn what each other has put.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "launcher/message/message.h"

namespace ddl::launcher {

/// Lives on the loop's thread.
class PmiBarriers {
 public:
  using Send = std::function<void(std::size_t node, const message::Any& message)>;
  /// rank_nodes: the agent of each rank.
  PmiBarriers(const std::vector<int>& rank_nodes, Send send) : send_(std::move(send)) {
    for (const int node : rank_nodes) nodes_.insert(static_cast<std::size_t>(node));
  }

  /// A node that has no ranks, or comes twice to one barrier, is not heard.
  void on(std::size_t node, message::PmiBarrier&& barrier);

 private:
  Send send_;
  std::set<std::size_t> nodes_;
  std::map<std::size_t, std::vector<message::PmiPair>> arrived_;
};

}  // namespace ddl::launcher
