// What an agent found on its node.
#pragma once

#include <cstdint>
#include <string>

namespace ddl::launcher {

/// Answered by every agent before anything is placed.
struct NodeFacts {
  std::string version;  ///< ddlrun's on that node
  std::string hostname;
  std::string kernel;          ///< "6.1.0-18-amd64"
  int slots = 0;               ///< ranks it takes without --oversubscribe: its allowed CPUs
  int allowed_cpus = 0;        ///< hardware threads that the job may use
  int allowed_cores = 0;       ///< distinct cores among them
  std::string master_address;  ///< where other ranks reach a rank of this node
  int free_port = 0;           ///< a TCP port that was free when asked; for torch's MASTER_PORT
  std::int64_t agent_pid = 0;
  bool operator==(const NodeFacts&) const = default;
};

}  // namespace ddl::launcher
