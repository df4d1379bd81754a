// Messages between a node's agent and its spawner, and the description of the child that the spawner starts.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/command.h"
#include "base/cpu_set.h"
#include "base/deadline.h"
#include "launcher/process/process_state.h"
#include "launcher/process/shell_attributes.h"

namespace ddl::launcher {

/// What the spawner starts. Its standard input, output and error are sent with it as descriptors.
/// It becomes the leader of a process group of its own, is killed if the spawner dies, has no descriptor but 0, 1, 2
/// and the inherited ones, and every signal at its default, but for SIGINT if its shell ignores it.
struct ChildSpec {
  int rank = 0;
  std::vector<std::string> argv;         ///< argv[0] is searched in the PATH of environment, from workdir
  std::vector<std::string> environment;  ///< "NAME=VALUE", complete
  std::string workdir;                   ///< absolute
  std::vector<int>
      inherited_fds{};  ///< numbers, above 2, of more descriptors that are sent with it, in this order
  CpuSet cpus{};        ///< that it may run on; empty: as the spawner
  std::vector<int> memory_nodes{};  ///< NUMA nodes that it prefers memory of; empty: as the spawner
  bool report_bindings = false;     ///< ChildStarted carries what the kernel reports of it
  ShellAttributes shell{};
  bool strict_bind = false;  ///< it is not started if it cannot be bound so
  bool operator==(const ChildSpec&) const = default;
};

namespace message {

// ---- agent to spawner ----

/// Start a process. Its standard streams and the descriptors that it inherits travel with the message
/// (SCM_RIGHTS).
struct Spawn {
  ChildSpec child;
  bool operator==(const Spawn&) const = default;
};
/// Send a signal to the process group of every running child.
struct SignalChildren {
  int signal = 0;
  bool operator==(const SignalChildren&) const = default;
};
/// Send a signal to the process group of the running child of this rank.
struct SignalChild {
  int rank = 0;
  int signal = 0;
  bool operator==(const SignalChild&) const = default;
};
/// Send this signal to every descendant, so that it ends; those that are stopped are continued.
struct AskToEnd {
  int signal = 0;
  bool operator==(const AskToEnd&) const = default;
};
/// SIGKILL to every descendant, again and again until none is left.
struct KillAll {
  bool operator==(const KillAll&) const = default;
};
/// Report Leftovers, if any process is left, and AllGone as soon as none is.
struct ReportGone {
  bool operator==(const ReportGone&) const = default;
};

using AgentToSpawner = std::variant<Spawn, SignalChildren, SignalChild, AskToEnd, KillAll, ReportGone>;

// ---- spawner to agent ----

struct ChildStarted {
  int rank = 0;
  std::int64_t pid = 0;
  KernelBinding binding;  ///< if ChildSpec::report_bindings
  int cpu_error = 0;      ///< errno of binding it to CPUs; 0: none
  int memory_error = 0;   ///< the same of memory
  bool operator==(const ChildStarted&) const = default;
};
struct ChildFailed {
  int rank = 0;
  StartStage stage = StartStage::kExec;
  int error = 0;  ///< errno
  bool operator==(const ChildFailed&) const = default;
};
struct ChildEnded {
  int rank = 0;
  int wait_status = 0;  ///< as from waitpid(2)
  Seconds run_seconds;
  ProcessUsage usage;
  bool operator==(const ChildEnded&) const = default;
};
struct Leftovers {
  int count = 0;
  bool operator==(const Leftovers&) const = default;
};
struct AllGone {
  bool operator==(const AllGone&) const = default;
};
/// A child was stopped by a signal (signal is its number), or goes on again (signal is 0).
struct ChildStopped {
  int rank = 0;
  int signal = 0;
  bool operator==(const ChildStopped&) const = default;
};

using SpawnerToAgent = std::variant<ChildStarted, ChildFailed, ChildEnded, ChildStopped, Leftovers, AllGone>;

}  // namespace message

}  // namespace ddl::launcher
