// The head's part of PMIx and PMI-1: fences, barriers, direct modex and published names go from one node's server
// to the others through the head.
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

/// What the ranks of a job have published (PMIx_Publish): values by key, each with its publisher. A lookup may wait
/// for keys that are not published yet. Values are bytes. Not thread-safe; answers are given from inside the calls.
class NameService {
 public:
  using Status = message::PmixNames::Status;
  using Pairs = std::vector<message::PmixPair>;
  using Answer = std::function<void(Status, Pairs)>;
  using LookupId = std::uint64_t;

  /// Stores the pairs and answers lookups that waited for them. kDuplicate, and nothing is stored, if one of the
  /// keys exists already. If a key is named twice in pairs, its first value is stored. first_read_only: a key is
  /// removed by its first lookup (PMIX_PERSIST_FIRST_READ).
  Status publish(const Pairs& pairs, bool first_read_only);
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

/// The PMIx servers of a job's nodes have no connection to each other: all that crosses nodes goes through the
/// head. Collects fences, forwards direct modex requests to the node of the rank, keeps published names. Lives on
/// the loop's thread. Numbers in messages come from agents and are checked: an invalid request is not answered.
class PmixRelay {
 public:
  using Send = std::function<void(int node, const message::HeadToAgent& message)>;
  /// rank_nodes: the agent of each rank.
  PmixRelay(EventLoop& loop, std::vector<int> rank_nodes, Send send);

  void on(int node, message::PmixFence&& fence);
  void on(int node, message::PmixModex&& request);
  void on(int node, message::PmixModexData&& answer);
  void on(int node, message::PmixPublish&& request);
  void on(int node, message::PmixLookup&& request);
  void on(int node, message::PmixUnpublish&& request);
  void on(int node, message::PmixEvent&& event);

 private:
  /// The fences of one group of ranks. Each node takes part in them in the same order.
  struct Group {
    std::set<int> nodes;                             // the nodes of its ranks
    std::map<int, std::deque<std::string>> arrived;  // data of incomplete fences, by node
  };
  bool is_rank(int rank) const { return rank >= 0 && rank < std::ssize(rank_nodes_); }
  void complete(const std::vector<int>& ranks, Group& group);

  EventLoop& loop_;
  std::vector<int> rank_nodes_;
  Send send_;
  std::set<int> all_nodes_;
  std::map<std::vector<int>, Group> groups_;
  NameService names_;
  std::map<NameService::LookupId, EventLoop::Timer> timeouts_;
};

/// PMI-1's barriers of a job, for the ranks of all nodes. A barrier also distributes the pairs that the ranks have
/// put. Lives on the loop's thread.
class PmiBarriers {
 public:
  using Send = std::function<void(int node, const message::HeadToAgent& message)>;
  /// rank_nodes: the agent of each rank.
  PmiBarriers(const std::vector<int>& rank_nodes, Send send) : send_(std::move(send)) {
    for (const int node : rank_nodes) nodes_.insert(node);
  }

  /// Ignored from a node without ranks, and the second time from one node in one barrier.
  void on(int node, message::PmiBarrier&& barrier);

 private:
  Send send_;
  std::set<int> nodes_;
  std::map<int, std::vector<message::PmiPair>> arrived_;
};

}  // namespace ddl::launcher
