// The head's part of PMIx and PMI-1: fences, barriers, direct modex and published names go from one node's server to the
// others through the head.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

// What ranks have published for each other (PMIx_Publish), for all nodes of a job.

/// Keys to values, each with its publisher. Lookups may wait for keys that are still to come. Values are bytes.
/// Not thread-safe; answers are given from inside the calls.
class NameService {
 public:
  using Status = message::PmixNames::Status;
  using Pairs = std::vector<message::PmixPair>;
  using Answer = std::function<void(Status, Pairs)>;
  using LookupId = std::uint64_t;

  /// kDuplicate, storing nothing, if one of the keys is there already; of a key named twice the first counts. Answers
  /// lookups that waited for them. first_read_only: each goes with its first reader.
  Status publish(Pairs pairs, bool first_read_only);
  /// Calls answer now, or, if wait is true, once all keys are there. Returns an id while it waits.
  std::optional<LookupId> lookup(std::vector<std::string> keys, bool wait, Answer answer);
  /// Ends a waiting lookup with kTimedOut; nothing if it has been answered.
  void time_out(LookupId id);
  /// Removes the publisher's own keys; all of them if keys is empty.
  void unpublish(int publisher, const std::vector<std::string>& keys);

 private:
  struct Item {
    message::PmixPair pair;
    bool first_read_only = false;
  };
  struct Waiting {
    LookupId id;
    std::vector<std::string> keys;
    Answer answer;
  };
  void answer_now(const std::vector<std::string>& keys, const Answer& answer);
  bool has_all(const std::vector<std::string>& keys) const;

  std::map<std::string, Item> items_;
  std::list<Waiting> waiting_;
  LookupId last_id_ = 0;
};

// The PMIx servers of a job's nodes do not know each other: what crosses nodes goes through the head.

/// Collects fences, passes questions on to the node that knows, keeps published names. Lives on the loop's thread.
/// Numbers in messages come from agents and are checked: what makes no sense is not answered.
class PmixRelay {
 public:
  using Send = std::function<void(std::size_t node, const message::HeadToAgent& message)>;
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

// PMI-1's barriers of a job: where the ranks of all nodes meet, and learn what each other has put.

/// Lives on the loop's thread.
class PmiBarriers {
 public:
  using Send = std::function<void(std::size_t node, const message::HeadToAgent& message)>;
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
