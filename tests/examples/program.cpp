#include "examples/program.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ddl::test {
namespace {

constexpr std::chrono::minutes kPatience(2);

}  // namespace

Program::Program(const std::vector<std::string>& argv)
    : deadline_(std::chrono::steady_clock::now() + kPatience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe2: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, argv.front().c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  output_fd_ = ends[0];
  if (error != 0) {
    ::close(output_fd_);
    throw std::runtime_error("starting " + argv.front() + ": " + std::strerror(error));
  }
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_fd_);
}

bool Program::read_more() {
  using std::chrono::milliseconds;
  pollfd readable{output_fd_, POLLIN, 0};
  int ready = -1;
  while (ready < 0) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    ready = left.count() > 0 ? ::poll(&readable, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno != EINTR) throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
  }
  if (ready == 0) throw std::runtime_error("no end after two minutes; so far:\n" + output_);
  char block[4096];
  const ssize_t n = ::read(output_fd_, block, sizeof block);
  if (n < 0) throw std::runtime_error(std::string("read: ") + std::strerror(errno));
  output_.append(block, static_cast<std::size_t>(n));
  return n > 0;
}

void Program::wait_for_output(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_more()) throw std::runtime_error("ended without printing \"" + text + "\":\n" + output_);
  }
}

void Program::signal(int number) { ::kill(pid_, number); }

Outcome Program::wait() {
  while (read_more()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), output_};
}

}  // namespace ddl::test
