#include "base/child_question.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace ddl {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;

[[noreturn]] void be_child(const std::function<std::string()>& question, int to, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(null, stream);
  const std::string text = question();
  // Its size first, so that an answer that is cut short is recognised.
  const std::uint64_t size = text.size();
  if (write_all(to, &size, sizeof size)) (void)write_all(to, text.data(), text.size());
  ::_exit(0);
}

/// The answer so far, with its size in front.
struct Answer {
  std::string bytes;

  std::optional<std::uint64_t> size() const {
    std::uint64_t size = 0;
    if (bytes.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data(), sizeof size);
    return size;
  }
  bool is_too_long() const { return size().value_or(0) > kMaxAnswerBytes; }
  bool is_whole() const { return size() && bytes.size() - sizeof(std::uint64_t) >= *size(); }
};

/// Reads until the answer is complete, turns out to be too long, or ends early. False: the deadline passed first.
bool read_answer(int fd, Deadline deadline, Answer& answer) {
  while (!answer.is_whole() && !answer.is_too_long()) {
    pollfd entry{fd, POLLIN, 0};
    if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) != 1) return false;
    std::array<char, 65536> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got <= 0) return true;
    answer.bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

Result<ChildQuestion> ChildQuestion::ask(const std::function<std::string()>& question) {
  DDL_ASSIGN(pipe, make_pipe());
  const pid_t parent = ::getpid();
  // Not by Child::start(): the child executes no program, it calls a function of this one.
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) be_child(question, pipe.second.get(), parent);
  ::setpgid(child, child);  // the child does the same: either may be first
  return ChildQuestion(Child(child, true), std::move(pipe.first));
}

Result<std::string> ChildQuestion::answer(Deadline deadline) {
  Answer answer;
  const bool is_in_time = read_answer(from_.get(), deadline, answer);
  child_.kill();  // a child that has answered may still hang before it ends
  const int status = child_.wait_status();
  if (!is_in_time) return fail(ErrorCode::kTimeout, "no answer in time");
  if (answer.is_too_long())
    return fail(ErrorCode::kProtocol,
                "its answer is longer than " + counted(kMaxAnswerBytes >> 20, "megabyte"));
  if (answer.is_whole()) return answer.bytes.substr(sizeof(std::uint64_t));
  return fail(ErrorCode::kUnavailable, WIFSIGNALED(status) ? "it crashed: " + signal_text(WTERMSIG(status))
                                                           : std::string("it ended without an answer"));
}

}  // namespace ddl
