#include "launcher/node/start_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <vector>

#include "base/command.h"

namespace ddl::launcher {

namespace {

// Debian 12's linux/mempolicy.h defines these, C libraries do not.
constexpr int kMpolPreferred = 1;
constexpr int kMpolPreferredMany = 5;
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> words_of(const std::vector<int>& numbers) {
  std::vector<unsigned long> words(1);
  for (const int number : numbers) {
    const std::size_t bit = number;
    words.resize(std::max(words.size(), bit / kWordBits + 1));
    words[bit / kWordBits] |= 1UL << (bit % kWordBits);
  }
  return words;
}

int set_memory_policy(int mode, const std::vector<int>& nodes) {
  const std::vector<unsigned long> words = words_of(nodes);
  // The kernel reads one bit fewer than maxnode.
  return ::syscall(SYS_set_mempolicy, mode, words.data(), words.size() * kWordBits + 1) == 0 ? 0 : errno;
}

/// The calling thread allocates memory from these NUMA nodes while they have some (set_mempolicy(2),
/// MPOL_PREFERRED_MANY; before Linux 5.15 from the first of them). Returns 0, also on a kernel without NUMA, or an
/// errno. Only for a process with one thread.
int prefer_memory_of(const std::vector<int>& nodes) {
  int error = set_memory_policy(kMpolPreferredMany, nodes);
  if (error == EINVAL) error = set_memory_policy(kMpolPreferred, {nodes.front()});
  return error == ENOSYS ? 0 : error;
}

Command command_of(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files) {
  Command command{.argv = spec.argv,
                  .environment = spec.environment,
                  .directory = spec.workdir,
                  .limits = {{RLIMIT_NOFILE, open_files}}};
  for (const auto& [resource, limit] : settable(spec.shell.soft_limits))
    command.limits.push_back({resource, limit});
  if (spec.shell.ignores_interrupt) command.ignored_signals = {SIGINT};
  command.streams = {fds.standard[0].get(), fds.standard[1].get(), fds.standard[2].get()};
  for (std::size_t i = 0; i < fds.inherited.size(); ++i)
    command.inherited.emplace_back(fds.inherited[i].get(), spec.inherited_fds[i]);
  return command;
}

// The child's side of the fork.
[[noreturn]] void become_child(const ChildSpec& spec, PreparedCommand& program, int errors, pid_t spawner) {
  const auto report = [&](const StartFailure& failure) {
    (void)retry_eintr([&] { return ::write(errors, &failure, sizeof failure); });
    if (failure.is_fatal) ::_exit(127);
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != spawner) ::_exit(127);  // it died before the line above took effect
  if (spec.shell.umask >= 0) ::umask(spec.shell.umask);
  if (!spec.cpus.is_empty()) {
    if (const int error = spec.cpus.bind_this_thread()) report({StartStage::kCpus, error, spec.strict_bind});
  }
  if (!spec.memory_nodes.empty()) {
    if (const int error = prefer_memory_of(spec.memory_nodes))
      report({StartStage::kMemory, error, spec.strict_bind});
  }
  report(program.become());
  ::_exit(127);
}

}  // namespace

Result<StartingChild> start_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files) {
  const Command command = command_of(spec, fds, open_files);
  PreparedCommand program(command);
  DDL_ASSIGN(errors, make_pipe());
  const UniqueFd to_spawner(::fcntl(errors.second.get(), F_DUPFD_CLOEXEC, program.first_free_fd()));
  if (!to_spawner) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  const pid_t spawner = ::getpid();
  const auto started = std::chrono::steady_clock::now();
  const BlockedSignals blocked;
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) become_child(spec, program, to_spawner.get(), spawner);
  ::setpgid(pid, pid);  // the child does the same; whichever is first, the group exists when this returns
  return StartingChild{spec.rank, pid, started, std::move(errors.first), spec.report_bindings, 0, 0};
}

StartState read_start_state(StartingChild& child, message::ChildFailed& failure) {
  StartFailure received{};
  const ssize_t got = retry_eintr([&] { return ::read(child.error_pipe.get(), &received, sizeof received); });
  if (got != sizeof received) return StartState::kStarted;
  if (received.is_fatal) {
    failure = {child.rank, received.stage, received.error};
    return StartState::kFailed;
  }
  (received.stage == StartStage::kCpus ? child.cpu_error : child.memory_error) = received.error;
  return StartState::kStarting;
}

}  // namespace ddl::launcher
