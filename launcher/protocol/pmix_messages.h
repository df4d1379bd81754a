// Messages by which the PMIx and PMI-1 servers of a job's nodes exchange data: an agent asks, and the head
// answers or forwards to other agents. They belong to HeadToAgent and AgentToHead (messages.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ddl::launcher::message {

// ---- PMIx ----

/// A key and its value, which a node's PMIx library has packed: only such a library reads it.
struct PmixPair {
  std::string key;
  std::string value;
  int publisher = 0;  ///< rank
  bool operator==(const PmixPair&) const = default;
};
/// This node's ranks of a group have all called fence; data is what they had put. Answered by PmixFenceDone.
struct PmixFence {
  std::vector<int> ranks;  ///< the group, ascending; empty: all ranks of the job
  std::string data;
  bool operator==(const PmixFence&) const = default;
};
/// All nodes of the group have sent PmixFence; data is theirs, concatenated in the order of the nodes.
struct PmixFenceDone {
  std::vector<int> ranks;
  std::string data;
  bool operator==(const PmixFenceDone&) const = default;
};
/// Asks for what a rank has put (direct modex). The head forwards it to the rank's node, and the answer back.
struct PmixModex {
  std::int64_t id = 0;  ///< the asking agent's own
  int node = 0;         ///< the asking node; filled in by the head
  int rank = 0;
  bool operator==(const PmixModex&) const = default;
};
struct PmixModexData {
  std::int64_t id = 0;
  int node = 0;    ///< the node that asked
  int status = 0;  ///< of the PMIx library, which is the same on all nodes
  std::string data;
  bool operator==(const PmixModexData&) const = default;
};
/// Answered by PmixNames.
struct PmixPublish {
  std::int64_t id = 0;
  std::vector<PmixPair> pairs;
  bool first_read_only = false;  ///< a value is removed when it has been read
  bool operator==(const PmixPublish&) const = default;
};
/// Answered by PmixNames.
struct PmixLookup {
  std::int64_t id = 0;
  std::vector<std::string> keys;
  bool wait = false;        ///< until all keys are there
  int timeout_seconds = 0;  ///< of wait; 0: none
  bool operator==(const PmixLookup&) const = default;
};
/// Answered by PmixNames.
struct PmixUnpublish {
  std::int64_t id = 0;
  int publisher = 0;
  std::vector<std::string> keys;  ///< empty: all of the publisher's
  bool operator==(const PmixUnpublish&) const = default;
};
struct PmixNames {
  enum class Status { kDone, kDuplicate, kPartial, kNotFound, kTimedOut };
  std::int64_t id = 0;
  Status status = Status::kDone;
  std::vector<PmixPair> found;
  bool operator==(const PmixNames&) const = default;
};
/// A rank has sent an event (PMIx_Notify_event); the head forwards it to all other nodes.
struct PmixEvent {
  int status = 0;
  int source = 0;     ///< rank
  int range = 0;      ///< pmix_data_range_t
  std::string infos;  ///< packed
  bool operator==(const PmixEvent&) const = default;
};

/// What the head sends to a node's PMIx server.
using PmixAnswer = std::variant<PmixFenceDone, PmixModex, PmixModexData, PmixNames, PmixEvent>;

// ---- PMI-1 ----

struct PmiPair {
  std::string key;
  std::string value;
  bool operator==(const PmiPair&) const = default;
};
/// All of this node's ranks wait in a barrier; pairs is what they have put since the last one. Answered by
/// PmiBarrierDone.
struct PmiBarrier {
  std::vector<PmiPair> pairs;
  bool operator==(const PmiBarrier&) const = default;
};
/// The ranks of all nodes have reached the barrier; pairs is what all of them have put.
struct PmiBarrierDone {
  std::vector<PmiPair> pairs;
  bool operator==(const PmiBarrierDone&) const = default;
};

}  // namespace ddl::launcher::message
