// Other processes, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/process.h"

namespace ddl::e2e {

/// One process, as read from /proc.
using Process = ProcessStat;

/// Every living process that was started with this entry ("NAME=VALUE") in its environment, and those that it forked.
/// Only those whose environment the caller may read. Zombies are not alive.
std::vector<Process> processes_with(const std::string& environment_entry);

/// Waits until the process has ended; it may have ended before. False if the deadline passed first.
bool wait_for_end_of(pid_t pid, Deadline deadline);
/// Waits until there is none of them. False if the deadline passed first.
bool wait_until_gone(const std::string& environment_entry, Deadline deadline);
/// Kills all of them, and those that they start meanwhile.
void kill_processes_with(const std::string& environment_entry, Deadline deadline);

/// The child with this name. nullopt if there is none.
std::optional<pid_t> child_named(pid_t parent, const std::string& name);

/// The peak resident set of the process, in bytes. nullopt once it has ended.
std::optional<std::int64_t> peak_memory_of(pid_t pid);

/// How often its threads have gone to sleep so far, which is how often they woke up. 0 if there is no such process.
std::int64_t sleeps_of(pid_t pid);

/// "pid 12 ddl-agent S 0.03 s do_epoll_wait, pid 13 sleep S 0.00 s hrtimer_nanosleep": for messages.
std::string describe(const std::vector<Process>& processes);

}  // namespace ddl::e2e
