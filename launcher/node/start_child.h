// Fork and exec of one rank, which binds itself to its CPUs and memory before exec. Child::start of base/command
// cannot be used because the spawner must not wait for exec, which may take as long as a slow file system: it reads
// the result from the error pipe later. Also, a binding that fails is reported without preventing the start, and
// the spawner itself reaps all children. The steps between fork and exec are the same, by PreparedCommand.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "launcher/protocol/spawner_messages.h"

namespace ddl::launcher {

/// The descriptors of a child.
struct ChildFds {
  std::array<UniqueFd, 3> standard;
  std::vector<UniqueFd> inherited;  ///< of ChildSpec::inherited_fds
};

/// A child that was forked and whose exec has not been noticed yet.
struct StartingChild {
  int rank = 0;
  pid_t pid = 0;
  std::chrono::steady_clock::time_point started;
  UniqueFd error_pipe;  ///< at end of file once exec has succeeded; before that it carries failures
  bool report_bindings = false;
  int cpu_error = 0;     ///< errno of binding it to CPUs, if it is started nevertheless; 0: none
  int memory_error = 0;  ///< the same for memory
};

/// Forks. The child redirects its streams, changes directory and calls exec, so a slow file system does not block
/// the caller. Only for a process with one thread. A signal that is sent to the child after this returns has its
/// default effect, also before exec. open_files: the child's limit of open files. Error: fork failed.
Result<StartingChild> start_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files);

enum class StartState : std::uint8_t { kStarting, kStarted, kFailed };

/// Reads an error pipe that is readable. kStarting: binding failed, which does not prevent the start and is
/// recorded in child. failure is filled for kFailed.
StartState read_start_state(StartingChild& child, message::ChildFailed& failure);

}  // namespace ddl::launcher
