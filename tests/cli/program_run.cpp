#include "cli/program_run.h"

#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "support/catch.h"

namespace ddl::test {

namespace {

constexpr int kDeadlineMilliseconds = 30'000;

// A file in memory: unlike a pipe it takes whatever the program writes without being read meanwhile.
UniqueFd make_capture() {
  UniqueFd fd(::memfd_create("captured output", MFD_CLOEXEC));
  REQUIRE(fd);
  return fd;
}

std::string captured(const UniqueFd& fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  REQUIRE(::pread(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return text;
}

UniqueFd make_input(const std::string& text) {
  if (text.empty()) return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd fd(::memfd_create("given input", MFD_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(write_all(fd.get(), text.data(), text.size()));
  REQUIRE(::lseek(fd.get(), 0, SEEK_SET) == 0);
  return fd;
}

[[noreturn]] void become_program(const ProgramSetup& setup, std::vector<char*>& argv,
                                 std::vector<char*>& environment, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (setup.close_all_standard_fds) {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  } else if (setup.out_path == "-") {
    ::close(STDOUT_FILENO);
  }
  if (!setup.directory.empty() && ::chdir(setup.directory.c_str()) != 0) ::_exit(199);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(198);
}

}  // namespace

ProgramRun run_program(const ProgramSetup& setup) {
  const UniqueFd in = make_input(setup.stdin_text);
  const UniqueFd out = make_capture();
  const UniqueFd err = make_capture();
  UniqueFd file;
  if (!setup.out_path.empty() && setup.out_path != "-") {
    file.reset(::open(setup.out_path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(file);
  }
  std::vector<char*> argv;
  for (const std::string& word : setup.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  const auto is_replaced = [&setup](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(setup.environment.begin(), setup.environment.end(),
                       [name](const std::string& own) { return own.starts_with(name); });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_replaced(*entry)) environment.push_back(*entry);
  }
  for (const std::string& entry : setup.environment) environment.push_back(const_cast<char*>(entry.c_str()));
  environment.push_back(nullptr);

  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) become_program(setup, argv, environment, in.get(), file ? file.get() : out.get(), err.get());

  const auto pidfd = open_pidfd(pid);
  REQUIRE(pidfd);
  pollfd waiting{pidfd->get(), POLLIN, 0};
  const int ready = retry_eintr([&] { return ::poll(&waiting, 1, kDeadlineMilliseconds); });
  if (ready != 1) static_cast<void>(send_signal(pidfd->get(), SIGKILL));
  int status = 0;
  REQUIRE(retry_eintr([&] { return ::waitpid(pid, &status, 0); }) == pid);

  ProgramRun run{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), captured(out),
                 captured(err)};
  INFO("standard error: " << run.err);
  REQUIRE(ready == 1);  // it ended by itself
  return run;
}

}  // namespace ddl::test
