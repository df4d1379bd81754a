// Fork and exec of one rank, which binds itself to its CPUs and memory before. It is apart from base/command's Child::start
// for what the spawner needs of it: exec may take as long as a file system does, and the spawner serves others meanwhile and
// reads from the error pipe how it went; a binding that fails is reported and need not keep the rank from starting; the
// spawner itself reaps all that ends. What comes between fork and exec is the same, by PreparedCommand.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "base/fd.h"
#include "launcher/process/child.h"
#include "launcher/protocol/spawner_messages.h"

namespace ddl::launcher {

/// What a child gets as its descriptors.
struct ChildFds {
  std::array<UniqueFd, 3> standard;
  std::vector<UniqueFd> inherited;  ///< of ChildSpec::inherited_fds
};

/// A process on its way to exec.
struct StartingChild {
  int rank = 0;
  pid_t pid = 0;
  std::chrono::steady_clock::time_point started;
  UniqueFd error_pipe;  ///< at end of file once exec has succeeded; otherwise carries what failed
  bool reports_binding = false;
  int cpu_error = 0;     ///< errno of binding it to CPUs, where that does not keep it from starting; 0: none
  int memory_error = 0;  ///< the same of memory
};

/// Forks; the child redirects, changes directory and execs by itself, so a slow file system does not hold the caller up.
/// Only for a process with one thread. Error: fork failed. A signal that the child is sent from now on has its default effect,
/// also before exec.
/// The child gets the given limit of open files back.
Result<StartingChild> start_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files);

enum class StartState : std::uint8_t { kGoesOn, kStarted, kFailed };

/// Reads an error pipe that is readable. kGoesOn: something failed that does not keep the child from starting, and is noted in
/// it. failure is filled for kFailed.
StartState read_start_state(StartingChild& child, message::ChildFailed& failure);

}  // namespace ddl::launcher
