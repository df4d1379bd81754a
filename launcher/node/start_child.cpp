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
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "contract/rank_process.h"

namespace ddl::launcher {

namespace {

// A process binds itself to memory.

// Debian 12's linux/mempolicy.h has these, C libraries have not.
constexpr int kMpolPreferred = 1;
constexpr int kMpolPreferredMany = 5;
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> words_of(const std::vector<int>& numbers) {
  std::vector<unsigned long> words(1);
  for (const int number : numbers) {
    const auto bit = static_cast<std::size_t>(number);
    words.resize(std::max(words.size(), bit / kWordBits + 1));
    words[bit / kWordBits] |= 1UL << (bit % kWordBits);
  }
  return words;
}

int set_memory_policy(int mode, const std::vector<int>& nodes) {
  const std::vector<unsigned long> words = words_of(nodes);
  // The kernel looks at one bit less than it is told.
  return ::syscall(SYS_set_mempolicy, mode, words.data(), words.size() * kWordBits + 1) == 0 ? 0 : errno;
}

/// Memory comes from these NUMA nodes while they have some (set_mempolicy(2), MPOL_PREFERRED_MANY; before Linux 5.15 the
/// first of them). Success on a kernel without NUMA. Returns 0 or an errno. Only for a process with one thread.
int prefer_memory_of(const std::vector<int>& nodes) {
  int error = set_memory_policy(kMpolPreferredMany, nodes);
  if (error == EINVAL) error = set_memory_policy(kMpolPreferred, {nodes.front()});
  return error == ENOSYS ? 0 : error;
}

using Stage = message::ChildFailed::Stage;

struct Failure {
  Stage stage;
  int error;
  bool is_fatal;
};

/// A signal that comes between fork and exec waits until the child has its own dispositions. With those of the caller, who ignores
/// some, it would be lost (the kernel keeps a blocked signal also where it is ignored).
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Signals that came before end the process here.
void restore_default_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// execvp(3) reports EACCES also when all that it met were directories of PATH that it may not search. A shell calls that
// "not found", and so does this; EACCES stays where PATH holds a file of that name.
int exec_error(const char* command, int error) {
  if (error != EACCES || std::strchr(command, '/') != nullptr) return error;
  const char* path = std::getenv("PATH");
  for (const auto directory : split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    const std::string file = (directory.empty() ? "." : std::string(directory)) + "/" + command;
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) return error;
  }
  return ENOENT;
}

/// Gives descriptors their numbers. Returns 0 or an errno; error_pipe moves out of the way.
int place(const std::vector<int>& numbers, const std::vector<UniqueFd>& fds, int& error_pipe) {
  if (numbers.empty()) return 0;
  const int above = *std::max_element(numbers.begin(), numbers.end()) + 1;
  // Each may have a number that is another's.
  std::vector<int> copies;
  for (const UniqueFd& fd : fds) copies.push_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, above));
  const int moved_pipe = ::fcntl(error_pipe, F_DUPFD_CLOEXEC, above);
  if (moved_pipe < 0) return errno;
  error_pipe = moved_pipe;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (copies[i] < 0 || ::dup2(copies[i], numbers[i]) < 0) return errno;
  }
  return 0;
}

// The child's half. Everything but 0, 1 and 2 is close-on-exec already.
[[noreturn]] void become_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files,
                               int error_pipe, pid_t spawner, char* const* argv, char** environment) {
  const auto tell = [&](Stage stage, int error, bool is_fatal) {
    const Failure failure{stage, error, is_fatal};
    (void)retry_eintr([&] { return ::write(error_pipe, &failure, sizeof failure); });
    if (is_fatal) ::_exit(127);
  };
  const auto give_up = [&](Stage stage) { tell(stage, errno, true); };
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != spawner) ::_exit(127);  // it died before the line above took effect
  restore_default_signals();
  if (!spec.cpus.is_empty()) {
    if (const int error = spec.cpus.bind_this_thread()) tell(Stage::kBindCpus, error, spec.strict_binding);
  }
  if (!spec.memory_nodes.empty()) {
    if (const int error = prefer_memory_of(spec.memory_nodes))
      tell(Stage::kBindMemory, error, spec.strict_binding);
  }
  for (int target = 0; target < 3; ++target) {
    if (::dup2(fds.standard[static_cast<std::size_t>(target)].get(), target) < 0) give_up(Stage::kRedirect);
  }
  if (const int error = place(spec.inherited_fds, fds.inherited, error_pipe))
    tell(Stage::kRedirect, error, true);
  if (::chdir(spec.workdir.c_str()) != 0) give_up(Stage::kWorkdir);
  ::setrlimit(RLIMIT_NOFILE, &open_files);
  environ = environment;  // execvp searches the PATH of environ
  ::execvp(argv[0], argv);
  errno = exec_error(argv[0], errno);
  give_up(Stage::kExec);
  ::_exit(127);
}

}  // namespace

Result<StartingChild> start_child(const ChildSpec& spec, const ChildFds& fds, const rlimit& open_files) {
  auto errors = make_pipe();
  if (!errors) return fail(errors.error());
  const auto argv = c_strings(spec.argv);
  auto environment = c_strings(spec.environment);
  const pid_t spawner = ::getpid();
  const auto started = std::chrono::steady_clock::now();
  const BlockedSignals blocked;
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    become_child(spec, fds, open_files, errors->second.get(), spawner, argv.data(), environment.data());
  }
  ::setpgid(pid, pid);  // the child does the same: whoever comes first, the group is there when this returns
  return StartingChild{spec.rank, pid, started, std::move(errors->first), spec.reports_binding, 0, 0};
}

StartState read_start_state(StartingChild& child, message::ChildFailed& failure) {
  Failure said{};
  const ssize_t got = retry_eintr([&] { return ::read(child.error_pipe.get(), &said, sizeof said); });
  if (got != sizeof said) return StartState::kStarted;
  if (said.is_fatal) {
    failure = {child.rank, said.stage, said.error};
    return StartState::kFailed;
  }
  (said.stage == Stage::kBindCpus ? child.cpu_error : child.memory_error) = said.error;
  return StartState::kGoesOn;
}

}  // namespace ddl::launcher
