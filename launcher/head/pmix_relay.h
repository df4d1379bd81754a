// The PMIx servers of a job's nodes do not know each other: what crosses nodes goes through the head.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/head/name_service.h"
#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"

namespace ddl::launcher {

/// Collects fences, passes questions on to the node that knows, keeps published names. Lives on the loop's thread.
/// Numbers in messages come from agents and are checked: what makes no sense is not answered.
class PmixRelay {
 public:
  using Send = std::function<void(std::size_t node, const message::Any& message)>;
  /// rank_nodes: the agent of each rank.
  PmixRelay(EventLoop& loop, std::vector<int> rank_nodes, Send send);

  void on(std::size_t node, message::PmixFence&& fence);
  void on(std::size_t node, message::PmixModex&& question);
  void on(std::size_t node, message::PmixModexData&& answer);
  void on(std::size_t node, message::PmixPublish&& request);
  void on(std::size_t node, message::PmixLookup&& request);
  void on(std::size_t node, message::PmixUnpublish&& request);
  void on(std::size_t node, message::PmixEvent&& event);

 private:
  /// Fences of one group, in the order in which each node came to them.
  struct Group {
    std::set<std::size_t> nodes;                             // that hold its ranks
    std::map<std::size_t, std::deque<std::string>> arrived;  // data of fences that are not complete
  };
  bool is_rank(int rank) const { return rank >= 0 && static_cast<std::size_t>(rank) < rank_nodes_.size(); }
  void complete(const std::vector<int>& ranks, Group& group);

  EventLoop& loop_;
  std::vector<int> rank_nodes_;
  Send send_;
  std::set<std::size_t> all_nodes_;
  std::map<std::vector<int>, Group> groups_;
  NameService names_;
  std::map<NameService::LookupId, EventLoop::Timer> timeouts_;
};

}  // namespace ddl::launcher
