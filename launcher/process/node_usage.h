// What a job has used of a node, from counters that need no root: memory, networks, energy, GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "launcher/process/memory_cgroup.h"

namespace ddl::launcher {

/// Bytes that have gone through a network adapter of the node, also those of others.
struct NetworkUse {
  std::string device;  ///< "eth0"; "mlx5_0/1" of InfiniBand
  std::int64_t received_bytes = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t limit_bytes_per_second = 0;  ///< as the kernel states its speed; 0: it does not
  bool operator==(const NetworkUse&) const = default;
};

/// Energy of a part of the node, also for others.
struct EnergyUse {
  std::string domain;  ///< "package-0", "node"
  std::int64_t joules = 0;
  bool operator==(const EnergyUse&) const = default;
};

/// A GPU of the job's ranks, also for others, while it was looked at. Numbers below 0: its library does not say, as of
/// an instance of a divided GPU (MIG).
struct GpuUse {
  std::string name;  ///< its UUID, or its bus id if it has none
  int index = 0;     ///< as its vendor's library counts
  std::string model;
  double busy_ratio = -1;       ///< of the time a kernel ran: 0 to 1
  double last_busy_ratio = -1;  ///< the same of the last moments
  std::int64_t memory_bytes = -1;
  std::int64_t memory_peak_bytes = -1;
  std::int64_t memory_limit_bytes = -1;
  std::int64_t joules = -1;
  bool operator==(const GpuUse&) const = default;
};

/// From the start of the agent until its ranks have ended.
struct NodeUsage {
  Seconds seconds;
  int cpus = 0;  ///< that the job may use here
  MemoryUse memory;
  std::vector<NetworkUse> networks;  ///< those that moved anything, the busiest first
  std::vector<EnergyUse> energy;
  std::string energy_unknown;  ///< why there is none
  std::vector<GpuUse> gpus{};
  std::string gpus_unknown{};  ///< why there are none
  bool operator==(const NodeUsage&) const = default;
};

/// Counts from its construction on. Reads a few files at the begin and at the end, and nothing between.
class NodeUsageWatch {
 public:
  /// root: the folder in place of "/", for tests.
  explicit NodeUsageWatch(std::string root = "");
  /// What has been used since. memory: of the job's cgroup.
  NodeUsage use(const MemoryCgroup& memory, int cpus) const;

 private:
  struct Counters {
    std::map<std::string, NetworkUse> networks;
    std::map<std::string, double> joules;
    std::map<std::string, double> joules_until_zero;  ///< of counters that begin again at 0
    std::string energy_unknown;
  };
  Counters read() const;

  std::string root_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Counters before_;
};

}  // namespace ddl::launcher
