#include <fcntl.h>
#include <unistd.h>

#include "contract/version.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/session_directory.h"
#include "launcher/fleet/greeting.h"
#include "launcher/fleet/stream_link.h"
#include "launcher/message/codec.h"

namespace ddl::launcher {
namespace {

// The standard stream under another number, so that nothing that prints can write into the link.
UniqueFd take_over(int standard_fd) {
  UniqueFd fd(::fcntl(standard_fd, F_DUPFD_CLOEXEC, 3));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), standard_fd);
  return fd;
}

}  // namespace

int run_remote_agent(const std::string& nonce) {
  UniqueFd read = take_over(STDIN_FILENO);
  UniqueFd write = take_over(STDOUT_FILENO);
  if (!read || !write) return 1;
  const std::string hello = greeting(contract::kVersion, nonce);
  if (!write_all(write.get(), hello.data(), hello.size())) return 1;
  auto directory = make_session_directory();
  if (!directory) {
    EventLoop loop;
    const auto last_words = make_stream_link(loop, std::move(read), std::move(write));
    message::send(*last_words, message::AgentFailed{directory.error().message(), false});
    last_words->flush();
    return 1;
  }
  return run_agent(*directory, std::move(read), std::move(write));
}

}  // namespace ddl::launcher
