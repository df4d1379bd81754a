// Messages of elastic jobs whose ranks go on when others fail: a process joins, and gets a rank in each generation. They
// belong to HeadToAgent and AgentToHead (messages.h). rank is that of the launch: the process's slot on its host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddl::launcher::message {

// ---- agent to head ----

/// A process waits for the next generation.
struct ElasticJoin {
  int rank = 0;
  int reason = 0;            ///< contract::JoinReason
  std::int64_t commits = 0;  ///< how many it has made or taken over
  bool operator==(const ElasticJoin&) const = default;
};
/// A process has done its work.
struct ElasticFinished {
  int rank = 0;
  bool operator==(const ElasticFinished&) const = default;
};

// ---- head to agent ----

/// The next generation, as far as this node has a part in it.
struct ElasticPlan {
  int generation = 0;
  int size = 0;
  std::vector<int> members;  ///< those of this launch that belong to it
  std::vector<int> ranks;    ///< theirs in the generation, in the same order
  std::string hosts;         ///< net::process_mapping() of all ranks
  bool operator==(const ElasticPlan&) const = default;
};
/// What the job is to do next.
struct ElasticChange {
  std::uint32_t change = 0;  ///< contract::JobChange
  bool operator==(const ElasticChange&) const = default;
};
/// End this process by SIGKILL: it does not come to the next generation.
struct KillRank {
  int rank = 0;
  bool operator==(const KillRank&) const = default;
};

}  // namespace ddl::launcher::message
