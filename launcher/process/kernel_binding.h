// What the kernel says of a running process: its CPUs, its memory policy, the GPUs that it was left.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "affinity/cpu_set.h"

namespace ddl::launcher {

struct KernelBinding {
  affinity::CpuSet cpus;  ///< that it may run on; empty: unknown
  std::string
      memory;  ///< its memory policy as the kernel writes it: "default", "prefer (many):0"; "" if unknown
  std::string devices;  ///< "CUDA_VISIBLE_DEVICES=0"; "" if none such is set
  bool operator==(const KernelBinding&) const = default;
};

/// Reads /proc of a process that has an environment; of one in the last steps of its exec it waits for them, 0.1 s at most.
/// Of a process that has ended and is not reaped only its CPUs. Works for any program.
KernelBinding read_kernel_binding(pid_t pid);

/// The CPUs in the text of /proc/PID/status; empty if there are none in it. Pure.
affinity::CpuSet parse_allowed_cpus(std::string_view status);
/// The policy in the first line of /proc/PID/numa_maps. Pure.
std::string parse_memory_policy(std::string_view numa_maps);
/// The first variable of visible devices in the text of /proc/PID/environ. Pure.
std::string parse_visible_devices(std::string_view environ);

}  // namespace ddl::launcher
