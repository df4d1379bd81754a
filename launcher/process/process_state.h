// What /proc says of a running process: its CPUs, its memory policy, the GPUs that it may see, and whether a signal has
// stopped it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/cpu_set.h"
#include "base/fd.h"

namespace ddl::launcher {

// What the kernel says of a running process: its CPUs, its memory policy, the GPUs that it was left.

struct KernelBinding {
  CpuSet cpus;  ///< that it may run on; empty: unknown
  std::string
      memory;  ///< its memory policy as the kernel writes it: "default", "prefer (many):0"; "" if unknown
  std::string devices;  ///< "CUDA_VISIBLE_DEVICES=0"; "" if none such is set
  bool operator==(const KernelBinding&) const = default;
};

/// Reads /proc of a process that has an environment; of one in the last steps of its exec it waits for them, 0.1 s at most.
/// Of a process that has ended and is not reaped only its CPUs. Works for any program.
KernelBinding read_kernel_binding(pid_t pid);

/// The CPUs in the text of /proc/PID/status; empty if there are none in it. Pure.
CpuSet parse_allowed_cpus(std::string_view status);
/// The policy in the first line of /proc/PID/numa_maps. Pure.
std::string parse_memory_policy(std::string_view numa_maps);
/// The first variable of visible devices in the text of /proc/PID/environ. Pure.
std::string parse_visible_devices(std::string_view environ);

// Whether a process of this host was stopped by a signal.

/// True for a process that SIGSTOP or its like keeps from running. False for one that waits or merely does not get a
/// CPU, for one that a debugger holds, and for one that is gone.
bool is_stopped(pid_t pid);

// Notices that a process of this host, without which another cannot do, stays stopped.

/// Whom a process cannot do without, it looks at again and again: somebody who is stopped answers nobody, and the kernel
/// tells nobody but the parent. Looks, not time, are counted, so that a machine that stood still makes nobody stopped.
class StoppedWatch {
 public:
  static constexpr auto kPeriod = std::chrono::milliseconds(2000);
  static constexpr auto kPeriodWhileStopped = std::chrono::milliseconds(800);
  static constexpr int kLooks = 2;

  /// looks: so many in a row at which the process was stopped are a stop for good. The process must be there.
  explicit StoppedWatch(pid_t pid, int looks = kLooks);
  /// One look: true if the process was stopped at this and the ones before it.
  bool is_stopped_for_good();
  bool was_stopped() const { return stopped_looks_ > 0; }  ///< at the last look
  /// Until the next look is to be taken.
  std::chrono::milliseconds pause() const { return was_stopped() ? kPeriodWhileStopped : kPeriod; }

 private:
  int looks_;
  UniqueFd stat_;  // its own, also when another process gets its number
  int stopped_looks_ = 0;
};

}  // namespace ddl::launcher
