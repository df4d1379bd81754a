// Facts about running processes, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.h"

namespace ddl::bench {

/// The path of the program that a process runs; "" if the process has ended or /proc/PID/exe may not be read.
std::string program_of(pid_t pid);

/// Memory of a process, in bytes, from /proc/PID/smaps_rollup.
struct MemoryUse {
  /// Private_*: the memory that would be freed if the process ended. The code of a library counts only while no other
  /// process of the machine has it mapped.
  std::int64_t unique = 0;
  std::int64_t resident = 0;  ///< Rss: includes shared memory
};
Result<MemoryUse> memory_use(pid_t pid);

/// Seconds of CPU that all threads of the process have used; exact to the nanosecond where the kernel keeps
/// schedstat, else to its clock tick. Threads that have ended are not counted.
Result<double> cpu_seconds(pid_t pid);

/// Seconds of CPU of the process and of all those descendants that have ended and been waited for, in the resolution
/// of the kernel's clock tick. 0 if there is no such process.
double cpu_seconds_with_reaped(pid_t pid);

}  // namespace ddl::bench
