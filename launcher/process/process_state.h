// What the kernel says of a process: its CPUs, its memory policy, the GPUs that it may see, whether a signal has stopped
// it, and what it has used when it has ended.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/cpu_set.h"
#include "base/deadline.h"
#include "base/fd.h"

namespace ddl::launcher {

struct KernelBinding {
  CpuSet cpus;  ///< that it may run on; empty: unknown
  std::string
      memory;  ///< its memory policy as the kernel writes it: "default", "prefer (many):0"; "" if unknown
  std::string devices;  ///< "CUDA_VISIBLE_DEVICES=0"; "" if none such is set
  bool operator==(const KernelBinding&) const = default;
};

/// What a process has used that has ended, with those of its children that it has waited for.
struct ProcessUsage {
  Seconds user_seconds{-1};    ///< on CPUs, in its own code; below 0: unknown, and so for the others
  Seconds system_seconds{-1};  ///< on CPUs, in the kernel
  std::int64_t peak_resident_bytes =
      -1;  ///< the most memory of one of these; at least that of the process that has started it
  bool operator==(const ProcessUsage&) const = default;
};

/// As wait4(2) has it. Pure.
ProcessUsage process_usage(const rusage& usage);

/// Reads /proc of a process that has an environment; if the process is in the last steps of its exec, waits for
/// these, 0.1 s at most. Of a process that has ended and is not reaped it reads only the CPUs. Works for any program.
KernelBinding read_kernel_binding(pid_t pid);

/// The CPUs in the text of /proc/PID/status; empty if there are none in it. Pure.
CpuSet parse_allowed_cpus(std::string_view status);
/// The policy in the first line of /proc/PID/numa_maps. Pure.
std::string parse_memory_policy(std::string_view numa_maps);
/// The first variable of visible devices in the text of /proc/PID/environ. Pure.
std::string parse_visible_devices(std::string_view environ);

/// What the first thread of a process waits in. Both are "" while it runs, and as far as the kernel does not tell this
/// process.
struct KernelWait {
  std::string system_call;  ///< "futex"; or its number
  std::string channel;      ///< the kernel's function
  bool operator==(const KernelWait&) const = default;
};
KernelWait read_kernel_wait(pid_t pid);
/// From the texts of /proc/PID/syscall and /proc/PID/wchan. Pure.
KernelWait parse_kernel_wait(std::string_view syscall, std::string_view wchan);

/// True for a process that SIGSTOP or its like keeps from running. False for one that waits or merely does not get a
/// CPU, for one that a debugger holds, and for one that is gone.
bool is_stopped(pid_t pid);

// Notices that a process of this host, without which another cannot do, stays stopped.

/// A process probes at intervals another one that it depends on: a stopped process does not answer, and the kernel
/// notifies only its parent. Probes are counted, and not time, so that a machine that stood still makes no process
/// count as stopped.
class StoppedWatch {
 public:
  static constexpr auto kPeriod = std::chrono::milliseconds(2000);
  static constexpr auto kPeriodWhileStopped = std::chrono::milliseconds(800);
  static constexpr int kProbes = 2;

  /// probes: the process is stopped for good if this number of probes in a row found it stopped. It must exist.
  explicit StoppedWatch(pid_t pid, int probes = kProbes);
  /// One probe: true if the process was stopped at this one and at those before it.
  bool is_stopped_for_good();
  bool was_stopped() const { return stopped_probes_ > 0; }  ///< at the last probe
  /// The time until the next probe.
  std::chrono::milliseconds pause() const { return was_stopped() ? kPeriodWhileStopped : kPeriod; }

 private:
  int probes_;
  UniqueFd stat_;  // its own, also when another process gets its number
  int stopped_probes_ = 0;
};

}  // namespace ddl::launcher
