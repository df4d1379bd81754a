#include "base/command.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/process.h"
#include "base/text.h"

namespace ddl {
namespace {

constexpr char kDefaultPath[] = "/bin:/usr/bin";  // execvp(3) since glibc 2.24
constexpr char kShell[] = "/bin/sh";
constexpr std::size_t kShellWords = 1;  // places in front of argv: the shell's name

/// Pointers into the texts, which must outlive them unchanged.
void append_pointers(std::vector<char*>& pointers, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
}

std::string file_in(std::string_view folder, std::string_view name) {
  return std::string(folder.empty() ? "." : folder) + "/" + std::string(name);
}

std::vector<std::string> own_entries() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::vector<std::string> entries_of(const Command& command) {
  std::vector<std::string> entries = command.environment ? *command.environment : own_entries();
  std::erase_if(entries, [&](const std::string& entry) {
    return command.variables.contains(entry.substr(0, entry.find('=')));
  });
  for (std::string& entry : environment_entries(command.variables)) entries.push_back(std::move(entry));
  return entries;
}

/// execvp(3) goes on to the next folder of PATH after these.
bool is_elsewhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENODEV ||
         error == ETIMEDOUT;
}

bool is_file(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

bool is_regular_file(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/// Whether the kernel could execute it on another machine. A shell would take it for a script and print nonsense.
/// Between fork and exec: system calls only.
bool is_elf(const char* path) {
  char beginning[SELFMAG] = {};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t count = ::read(fd, beginning, SELFMAG);
  ::close(fd);
  return count == SELFMAG && std::memcmp(beginning, ELFMAG, SELFMAG) == 0;
}

}  // namespace

PreparedCommand::PreparedCommand(const Command& command)
    : command_(command), environment_(entries_of(command)) {
  append_pointers(environment_pointers_, environment_);
  argv_.push_back(const_cast<char*>(kShell));
  append_pointers(argv_, command.argv);
  const std::string name = command.argv.empty() ? "" : command.argv.front();
  if (name.find('/') != std::string::npos) {
    files_.push_back(name);
  } else if (!name.empty()) {
    searches_path_ = true;
    const std::string path = search_path(environment_);
    for (const std::string_view folder : split(path, ':')) files_.push_back(file_in(folder, name));
  }
  placed_ = {{command.streams.in, 0}, {command.streams.out, 1}, {command.streams.err, 2}};
  placed_.insert(placed_.end(), command.inherited.begin(), command.inherited.end());
  copies_.resize(placed_.size());
  for (const auto& [fd, number] : placed_) first_free_fd_ = std::max(first_free_fd_, number + 1);
}

int PreparedCommand::execute() {
  int error = ENOENT;
  for (const std::string& file : files_) {
    char** const argv = argv_.data() + kShellWords;
    ::execve(file.c_str(), argv, environment_pointers_.data());
    if (errno == ENOEXEC) {
      if (is_elf(file.c_str())) return ENOEXEC;
      argv[0] = const_cast<char*>(file.c_str());
      ::execve(kShell, argv_.data(), environment_pointers_.data());
    }
    if (!searches_path_ || !is_elsewhere(errno)) return errno;
    // A folder of PATH that may not be searched is "not found", as for a shell. EACCES stays where a file has that
    // name.
    if (errno == EACCES && is_file(file.c_str())) error = EACCES;
  }
  return error;
}

namespace {

/// Every descriptor that this process was given or opened without close-on-exec would reach the program.
void close_on_exec_from(unsigned int first) {
  // close_range(2), by number: C libraries know it since glibc 2.34. CLOSE_RANGE_CLOEXEC is there since Linux 5.11.
  constexpr long kCloseRange = 436;
  constexpr unsigned int kCloseOnExec = 1U << 2;
  if (::syscall(kCloseRange, first, ~0U, kCloseOnExec) == 0) return;
  // readdir(3) allocates.
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[1];
  };
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(Entry) char buffer[4096];
  for (long got; folder >= 0 && (got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      const char* const entry = buffer + at;
      unsigned short size = 0;
      std::memcpy(&size, entry + offsetof(Entry, size), sizeof size);
      at += size;
      unsigned int fd = 0;
      const char* digit = entry + offsetof(Entry, name);
      for (; *digit >= '0' && *digit <= '9'; ++digit) fd = fd * 10 + static_cast<unsigned int>(*digit - '0');
      if (fd >= first) ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
  }
  if (folder >= 0) ::close(folder);
}

void set_signals(const std::vector<int>& ignored) {
  struct sigaction action {};
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool is_ignored = std::find(ignored.begin(), ignored.end(), signal) != ignored.end();
    action.sa_handler = is_ignored ? SIG_IGN : SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // signals that came before end the process here
}

}  // namespace

bool PreparedCommand::place_descriptors() {
  // A descriptor may have the number that another one is to get.
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    int fd = placed_[i].first;
    if (fd == kClosedStream) continue;
    if (fd == kNullStream) fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    copies_[i] = ::fcntl(fd, F_DUPFD_CLOEXEC, first_free_fd_);
    if (copies_[i] < 0) return false;
  }
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const auto [fd, number] = placed_[i];
    if (fd == kClosedStream) {
      ::close(number);
    } else if (::dup2(copies_[i], number) < 0) {
      return false;
    }
  }
  return true;
}

StartFailure PreparedCommand::become() {
  if (command_.group == Command::Group::kOwn) ::setpgid(0, 0);
  if (command_.group == Command::Group::kOwnSession) ::setsid();
  set_signals(command_.ignored_signals);
  if (command_.parent_death_signal != 0) ::prctl(PR_SET_PDEATHSIG, command_.parent_death_signal);
  if (!command_.cpus.is_empty()) {
    if (const int error = command_.cpus.bind_this_thread()) return {StartStage::kCpus, error};
  }
  if (!command_.keeps_descriptors) close_on_exec_from(STDERR_FILENO + 1);
  if (!place_descriptors()) return {StartStage::kStreams, errno};
  if (command_.has_terminal && ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) return {StartStage::kStreams, errno};
  if (!command_.directory.empty() && ::chdir(command_.directory.c_str()) != 0)
    return {StartStage::kDirectory, errno};
  for (const Command::Limit& limit : command_.limits) {
    if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &limit.value) != 0)
      return {StartStage::kLimits, errno};
  }
  return {StartStage::kExec, execute()};
}

BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before_);
}

BlockedSignals::~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

namespace {

[[noreturn, gnu::noinline]] void be_child(PreparedCommand& prepared, int errors) {
  const StartFailure failure = prepared.become();
  (void)retry_eintr([&] { return ::write(errors, &failure, sizeof failure); });
  ::_exit(127);
}

/// vfork(2) and not fork(2): like posix_spawn(3) it copies no page tables, and no handler of pthread_atfork(3) runs.
/// The child has this thread's memory until it executes the program, while this thread waits and gets no signal; all
/// that it does there is system calls. Not inlined, so that no variable of the caller lives in a register across it.
[[gnu::noinline]] pid_t start_beside_threads(PreparedCommand& prepared, int errors) {
  const BlockedSignals blocked;
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0)
    be_child(prepared, errors);  // NOLINT(clang-analyzer-unix.Vfork): it calls the system, and never returns
  return pid;
}

Error start_error(const Command& command, const StartFailure& failure) {
  const std::string starting = "starting " + (command.argv.empty() ? "no program" : command.argv.front());
  const auto during = [&](const std::string& what) {
    return errno_error(what, failure.error).during(starting);
  };
  switch (failure.stage) {
    case StartStage::kCpus: return during("binding it to CPUs " + command.cpus.list());
    case StartStage::kStreams: return during("its standard streams");
    case StartStage::kDirectory: return during("its directory " + command.directory);
    case StartStage::kLimits: return during("its resource limits");
    case StartStage::kFork:
    case StartStage::kMemory:
    case StartStage::kExec: break;
  }
  return errno_error(starting, failure.error);
}

}  // namespace

Result<Child> Child::start(const Command& command) {
  PreparedCommand prepared(command);
  DDL_ASSIGN(errors, make_pipe());  // at its end once the program runs
  UniqueFd to_parent(::fcntl(errors.second.get(), F_DUPFD_CLOEXEC, prepared.first_free_fd()));
  if (!to_parent) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  errors.second.reset();
  const pid_t pid = start_beside_threads(prepared, to_parent.get());
  if (pid < 0) return fail_errno("vfork");
  to_parent.reset();
  Child child(pid, command.group != Command::Group::kOfParent);
  StartFailure failure{};
  if (retry_eintr([&] { return ::read(errors.first.get(), &failure, sizeof failure); }) == sizeof failure)
    return fail(start_error(command, failure));  // the child is ending, and is reaped here
  return child;
}

Child::Child(pid_t pid, bool leads_group) : pid_(pid), leads_group_(leads_group) {}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_),
      wait_status_(other.wait_status_),
      leads_group_(other.leads_group_),
      is_reaped_(std::exchange(other.is_reaped_, true)),
      knows_status_(other.knows_status_) {}

bool Child::wait(Deadline deadline) {
  if (!is_reaped_ && wait_for_end(pid_, deadline)) reap();
  return is_reaped_;
}

int Child::exit_code() const {
  return WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

void Child::signal(int signal) const {
  if (!is_reaped_) ::kill(pid_, signal);
}

void Child::end(Deadline deadline) {
  if (!wait(deadline)) kill();
}

void Child::kill() {
  if (is_reaped_) return;
  ::kill(leads_group_ ? -pid_ : pid_, SIGKILL);
  reap();
}

void Child::reap() {
  // Fails if other code of this process has reaped it: a subreaper waits for every child.
  knows_status_ = retry_eintr([&] { return ::waitpid(pid_, &wait_status_, 0); }) == pid_;
  is_reaped_ = true;
}

Result<PipedChild> start_piped(Command command) {
  DDL_ASSIGN(in, make_pipe());
  DDL_ASSIGN(out, make_pipe());
  DDL_ASSIGN(err, make_pipe());
  command.streams = {in.first.get(), out.second.get(), err.second.get()};
  DDL_ASSIGN(child, Child::start(command));
  return PipedChild{std::move(child), std::move(in.second), std::move(out.first), std::move(err.first)};
}

std::string search_path(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string_view entry : environment) {
    if (entry.starts_with(kName)) return std::string(entry.substr(kName.size()));
  }
  return kDefaultPath;
}

Error become(const std::vector<std::string>& argv,
             const std::optional<std::vector<std::string>>& environment) {
  const Command command{argv, environment};
  return errno_error("executing " + argv.front(), PreparedCommand(command).execute());
}

std::optional<std::string> find_in_path(std::string_view name, std::string_view path) {
  for (const std::string_view folder : split(path, ':')) {
    std::string file = file_in(folder, name);
    if (::access(file.c_str(), X_OK) == 0 && is_regular_file(file.c_str())) return file;
  }
  return std::nullopt;
}

}  // namespace ddl
