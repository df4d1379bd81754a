#include "base/child_question.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/text.h"

namespace ddl {
namespace {

constexpr std::size_t kMostAnswer = std::size_t{1} << 20;

[[noreturn]] void be_child(const std::function<std::string()>& question, int to, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(null, stream);
  const std::string text = question();
  (void)write_all(to, text.data(), text.size());
  ::_exit(0);
}

/// All that comes until the end; nothing if it does not end in time.
std::optional<std::string> read_all(int fd, Deadline deadline) {
  std::string text;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) != 1)
      return std::nullopt;
    std::array<char, 4096> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got <= 0 || text.size() > kMostAnswer) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<ChildQuestion> ChildQuestion::ask(const std::function<std::string()>& question) {
  auto pipe = make_pipe();
  if (!pipe) return fail(std::move(pipe.error()));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) be_child(question, pipe->second.get(), parent);
  ::setpgid(child, child);  // the child does the same: whoever comes first
  return ChildQuestion(child, std::move(pipe->first));
}

ChildQuestion::ChildQuestion(ChildQuestion&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), from_(std::move(other.from_)) {}

int ChildQuestion::end() {
  if (pid_ <= 0) return 0;
  // Who has answered may hang on its way out.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  retry_eintr([&] { return ::waitpid(pid_, &status, 0); });
  pid_ = 0;
  return status;
}

Result<std::string> ChildQuestion::answer(Deadline deadline) {
  const auto text = read_all(from_.get(), deadline);
  const int status = end();
  if (!text) return fail(ErrorCode::kTimeout, "no answer in time");
  if (!text->empty()) return *text;
  return fail(ErrorCode::kUnavailable, WIFSIGNALED(status) ? "it crashed: " + signal_text(WTERMSIG(status))
                                                           : std::string("it ended without an answer"));
}

}  // namespace ddl
