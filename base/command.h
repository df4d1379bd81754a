// Another program as a process: its complete description before it is started, and the running child.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "base/deadline.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/fd.h"

namespace ddl {

/// In place of a descriptor: the stream is /dev/null, or closed.
inline constexpr int kNullStream = -1, kClosedStream = -2;

/// What becomes a program's standard streams: descriptors, which stay open here, or the two above.
struct StandardStreams {
  int in = 0;
  int out = 1;
  int err = 2;
};

/// A program to start, described completely. No descriptor reaches it but the streams and the inherited ones, unless it
/// keeps_descriptors; no signal is blocked, and every signal is at its default but the ignored ones.
struct Command {
  enum class Group : std::uint8_t {
    kOwn,        ///< it leads a process group, so that ^C does not reach it and all of it can be killed
    kOfParent,   ///< that of the calling process
    kOwnSession  ///< it leads a session, and a group in it
  };
  struct Limit {
    int resource = 0;  ///< as for setrlimit(2)
    rlimit value{};
  };

  std::vector<std::string> argv;  ///< argv[0] is searched in the PATH of its environment, from its directory
  /// NAME=VALUE, complete; nullopt: this process's own.
  std::optional<std::vector<std::string>> environment{};
  Environment variables{};  ///< set in it, in place of what is there
  StandardStreams streams{};
  /// More descriptors of this process, and the numbers that they get there.
  std::vector<std::pair<int, int>> inherited{};
  std::string directory{};             ///< "": this process's own
  CpuSet cpus{};                       ///< that it may run on; empty: as the calling thread
  std::vector<int> ignored_signals{};  ///< as nohup(1) leaves SIGHUP
  std::vector<Limit> limits{};         ///< in place of this process's own
  Group group = Group::kOwn;
  /// It gets this signal when the thread that has started it ends; 0: none. Programs that it starts do not.
  int parent_death_signal = 0;
  /// Descriptors of this process without close-on-exec, which the caller's shell has given it, reach the program, too.
  bool keeps_descriptors = false;
  /// streams.in is a terminal, and becomes the controlling one of its own session.
  bool has_terminal = false;
};

/// A step of a start, from the fork on. kMemory: of a caller that binds the child's memory before become().
enum class StartStage : std::uint8_t { kFork, kCpus, kMemory, kStreams, kDirectory, kLimits, kExec };
/// A step that failed. It crosses a pipe as it is: the child of a process with threads may allocate no Error.
struct StartFailure {
  StartStage stage;
  int error;             ///< errno
  bool is_fatal = true;  ///< the program is not started
};

/// What a process needs in order to become a program, prepared before the fork: the child of a process with threads
/// may allocate nothing. The command must outlive it unchanged.
class PreparedCommand {
 public:
  explicit PreparedCommand(const Command& command);
  explicit PreparedCommand(const Command&& command) = delete;
  PreparedCommand(const PreparedCommand&) = delete;
  PreparedCommand& operator=(const PreparedCommand&) = delete;

  /// In the child, while all signals are blocked: does everything that the command asks for, and executes the
  /// program. Returns only if that fails.
  StartFailure become();
  /// Executes the program and changes nothing else of the process. Returns only on failure, with the errno.
  int execute();
  /// The program gets no descriptor of this number or above it: what the child itself needs until then belongs here.
  int first_free_fd() const { return first_free_fd_; }

 private:
  bool place_descriptors();

  const Command& command_;
  std::vector<std::string> environment_;
  std::vector<char*> environment_pointers_;
  std::vector<std::string> files_;  // that argv[0] may mean, in their order
  bool searches_path_ = false;
  std::vector<char*> argv_;  // behind the name of the shell that runs it if it is a script without #!
  std::vector<std::pair<int, int>> placed_;  // descriptor (or kNullStream, kClosedStream) and number
  std::vector<int> copies_;                  // of placed_, on the way to their numbers
  int first_free_fd_ = 3;
};

/// Blocks all signals of the calling thread: one that comes between fork and exec waits until the child has its own
/// dispositions. With those of its parent, which ignores some signals, it would be lost.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// A child of this process until it has been reaped; until then its pid is no other process's, so that the child can
/// be signalled by pid. The destructor kills it with its group, and reaps it. For one thread.
class Child {
 public:
  /// Starts a program beside this process's threads (vfork(2)); returns when it runs. Error: it cannot be started;
  /// kNotFound, kPermissionDenied: there is no such program, or it may not be executed.
  static Result<Child> start(const Command& command);

  /// Takes over a child that was forked elsewhere. leads_group: it is a group leader.
  Child(pid_t pid, bool leads_group);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child() { end(Deadline::after(Deadline::Clock::duration::zero())); }

  pid_t pid() const { return pid_; }
  /// Waits for its end, and reaps it. False: the deadline passed first.
  bool wait(Deadline deadline);
  /// As from waitpid(2), once it has been reaped; 0 unless knows_status().
  int wait_status() const { return wait_status_; }
  /// False if this process's other code, or the kernel because SIGCHLD is ignored, has reaped it.
  bool knows_status() const { return knows_status_; }
  /// As a shell has it, once it has been reaped: its exit code, or 128 + N for death by signal N.
  int exit_code() const;

  /// Sends it a signal, unless it has been reaped.
  void signal(int signal) const;
  /// Waits, and kills it with its group after the deadline; reaps it.
  void end(Deadline deadline);
  /// Kills it with its group at once, also what it left there if it has ended itself; reaps it.
  void kill();

 private:
  void reap();

  pid_t pid_;
  int wait_status_ = 0;
  bool leads_group_;
  bool is_reaped_ = false;
  bool knows_status_ = false;
};

/// A program whose standard streams are pipes of this process.
struct PipedChild {
  Child child;
  UniqueFd in;   ///< what it reads
  UniqueFd out;  ///< what it writes
  UniqueFd err;
};
/// Starts a program with three pipes, in place of command.streams.
Result<PipedChild> start_piped(Command command);

/// The folders in which a program with this environment (NAME=VALUE) is looked for: its PATH, or those of execvp(3)
/// without one.
std::string search_path(const std::vector<std::string>& environment);

/// Becomes argv[0], looked for in the PATH of the environment; signals, descriptors and all else stay. Returns only
/// if that fails. environment: nullopt, this process's own.
Error become(const std::vector<std::string>& argv,
             const std::optional<std::vector<std::string>>& environment = std::nullopt);

/// What a shell would start for a bare name: the first executable regular file in the folders of a PATH, separated by
/// ':'. Reads the file system.
std::optional<std::string> find_in_path(std::string_view name, std::string_view path);

}  // namespace ddl
