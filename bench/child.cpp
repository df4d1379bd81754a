#include "bench/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>

#include <fmt/format.h>

#include "base/process.h"
#include "base/text.h"
#include "bench/process_table.h"

namespace ddl::bench {
namespace {

constexpr auto kStragglerGrace = std::chrono::seconds(2);
constexpr std::size_t kQuotedOutput = 2000;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_of_reaped_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

// What a program said, as part of one line: the lines that hold any words, separated by " | ".
std::string join_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.find_first_not_of(" \t\r-=") != std::string_view::npos) lines.emplace_back(trim(line));
  }
  return join(lines, " | ");
}

// posix_spawn has no attribute for affinity, so the calling thread takes the child's on while it spawns.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int cpu : cpus) CPU_SET(cpu, &wanted);
    changed_ = ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
    if (!changed_) errno_ = errno;
  }
  ~ScopedAffinity() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;
  int error() const { return errno_; }

 private:
  cpu_set_t before_{};
  bool changed_ = false;
  int errno_ = 0;
};

std::vector<std::string> environment_with(const Command& command) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : command.environment) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

// The attributes of posix_spawn are C objects that must be destroyed on every path.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

// False if this process has no children any more, and so, being a subreaper, no descendants either.
bool reap_zombies() {
  for (;;) {
    const pid_t reaped = ::waitpid(-1, nullptr, WNOHANG);
    if (reaped == 0) return true;
    if (reaped < 0 && errno != EINTR) return false;
  }
}

void kill_descendants() {
  while (reap_zombies()) {
    const std::vector<pid_t> living = descendants(::getpid());
    for (const pid_t pid : living) ::kill(pid, SIGKILL);
    // A process that was just being forked may have escaped the signal: look again soon.
    wait_until_one_ends(living, Deadline::after(std::chrono::milliseconds(100)));
  }
}

// Waits for what the entrant has left behind. What still runs at the deadline is killed, and its programs returned.
std::string reap_orphans(Deadline deadline) {
  while (reap_zombies()) {
    const std::vector<pid_t> living = descendants(::getpid());
    if (deadline.has_passed()) {
      std::vector<std::string> programs;
      for (const pid_t pid : living) programs.push_back(program_of(pid));
      kill_descendants();
      return join(programs, ", ");
    }
    wait_until_one_ends(living, deadline);
  }
  return {};
}

}  // namespace

std::string command_text(const Command& command) {
  std::vector<std::string> words;
  for (const auto& [name, value] : command.environment) words.push_back(name + "=" + shell_quote(value));
  for (const std::string& word : command.argv) words.push_back(shell_quote(word));
  return join(words, " ");
}

Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return fail_errno("prctl(PR_SET_CHILD_SUBREAPER)");
  return {};
}

Child::Child(pid_t pid, UniqueFd pidfd, UniqueFd output, double started, double cpu_before)
    : pid_(pid),
      pidfd_(std::move(pidfd)),
      output_fd_(std::move(output)),
      started_(started),
      cpu_before_(cpu_before) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      output_fd_(std::move(other.output_fd_)),
      output_(std::move(other.output_)),
      started_(other.started_),
      cpu_before_(other.cpu_before_) {}

Child::~Child() {
  if (pid_ > 0) kill_descendants();
}

Result<Child> Child::start(const Command& command) {
  auto pipe = make_pipe();
  if (!pipe) return fail(std::move(pipe.error()));
  DDL_TRY(set_nonblocking(pipe->first.get(), true));

  SpawnPlan plan;
  ::posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&plan.actions, pipe->second.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, pipe->second.get(), STDERR_FILENO);
  // A process group of its own: what a launcher sends to its group never reaches the harness.
  ::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);

  std::vector<std::string> argv_words = command.argv;
  std::vector<std::string> environment_words = environment_with(command);
  const std::vector<char*> argv = c_strings(argv_words);
  const std::vector<char*> environment = c_strings(environment_words);

  const double cpu_before = cpu_of_reaped_children();
  const ScopedAffinity affinity(command.cpus);
  if (affinity.error() != 0) return fail(errno_error("sched_setaffinity", affinity.error()));
  const double started = now_seconds();
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, argv[0], &plan.actions, &plan.attributes, argv.data(), environment.data());
  if (error != 0) return fail(errno_error("start " + command.argv[0], error));

  auto pidfd = open_pidfd(pid);
  Child child(pid, pidfd ? std::move(*pidfd) : UniqueFd(), std::move(pipe->first), started, cpu_before);
  if (!pidfd) return fail(std::move(pidfd.error()));
  return child;
}

// Takes what is there and does not wait; closes the pipe at its end.
Status Child::read_output() {
  std::array<char, 16384> buffer;
  while (output_fd_) {
    const ssize_t size = retry_eintr([&] { return ::read(output_fd_.get(), buffer.data(), buffer.size()); });
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return fail_errno("read the program's output");
    if (size == 0) output_fd_.reset();
    output_.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return {};
}

Result<Child::Event> Child::next_event(Deadline deadline) {
  std::array<pollfd, 2> watched{pollfd{output_fd_ ? output_fd_.get() : -1, POLLIN, 0},
                                pollfd{pidfd_.get(), POLLIN, 0}};
  const int ready =
      retry_eintr([&] { return ::poll(watched.data(), watched.size(), deadline.poll_milliseconds()); });
  if (ready < 0) return fail_errno("poll");
  if (watched[0].revents != 0) DDL_TRY(read_output());
  if (watched[1].revents != 0) return Event::kEnded;
  return ready == 0 ? Event::kTimeout : Event::kOutput;
}

Error Child::failure(const std::string& what) const {
  const bool is_long = output_.size() > kQuotedOutput;
  const std::string_view end =
      is_long ? std::string_view(output_).substr(output_.size() - kQuotedOutput) : output_;
  const std::string tail = join_lines(end);
  return Error(ErrorCode::kSystem,
               tail.empty() ? what + ", without any output" : what + "; its output ends: " + tail);
}

Status Child::wait_for_output(const std::string& word, int count, Deadline deadline) {
  for (;;) {
    int found = 0;
    for (std::size_t at = output_.find(word); at != std::string::npos;
         at = output_.find(word, at + word.size()))
      ++found;
    if (found >= count) return {};
    const auto event = next_event(deadline);
    if (!event) return fail(event.error());
    if (*event == Event::kEnded) return fail(failure(fmt::format("ended before it said \"{}\"", word)));
    if (*event == Event::kTimeout) return fail(failure(fmt::format("did not say \"{}\" in time", word)));
  }
}

Status Child::stay_running(Deadline deadline) {
  for (;;) {
    const auto event = next_event(deadline);
    if (!event) return fail(event.error());
    if (*event == Event::kEnded) return fail(failure("ended by itself"));
    if (*event == Event::kTimeout) return {};
  }
}

Result<RunCost> Child::finish(Deadline deadline) {
  for (;;) {
    const auto event = next_event(deadline);
    if (!event) return fail(event.error());
    if (*event == Event::kTimeout) return fail(failure("did not end in time"));
    if (*event == Event::kEnded) break;
  }
  int status = 0;
  if (retry_eintr([&] { return ::waitpid(pid_, &status, 0); }) < 0) return fail_errno("waitpid");
  RunCost cost;
  cost.wall_seconds = now_seconds() - started_;
  pid_ = -1;

  const std::string stragglers = reap_orphans(Deadline::after(kStragglerGrace));
  DDL_TRY(read_output());
  if (!stragglers.empty()) return fail(failure("left running: " + stragglers));
  if (WIFSIGNALED(status)) return fail(failure("died of " + signal_text(WTERMSIG(status))));
  if (WEXITSTATUS(status) != 0) return fail(failure(fmt::format("exited with {}", WEXITSTATUS(status))));
  cost.cpu_seconds = cpu_of_reaped_children() - cpu_before_;
  return cost;
}

}  // namespace ddl::bench
