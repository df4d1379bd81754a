#include "launcher/fleet/piped_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/process.h"

namespace ddl::launcher {
Result<PipedChild> PipedChild::start(const std::vector<std::string>& words,
                                     const std::optional<Environment>& environment, Streams& streams) {
  auto in = make_pipe();
  if (!in) return fail(in.error());
  auto out = make_pipe();
  if (!out) return fail(out.error());
  auto err = make_pipe();
  if (!err) return fail(err.error());
  std::optional<std::vector<std::string>> entries;
  if (environment) entries = environment_entries(*environment);
  const auto pid = spawn(words, {in->first.get(), out->second.get(), err->second.get()}, entries);
  if (!pid) return fail(pid.error());
  streams = {std::move(out->first), std::move(in->second), std::move(err->first)};
  return PipedChild(*pid);
}

PipedChild::PipedChild(PipedChild&& other) noexcept
    : pid_(other.pid_), status_(other.status_), ended_(std::exchange(other.ended_, true)) {}

bool PipedChild::wait(Deadline deadline) {
  if (ended_) return true;
  if (!wait_for_end(pid_, deadline)) return false;
  ended_ = retry_eintr([&] { return ::waitpid(pid_, &status_, WNOHANG); }) == pid_;
  return ended_;
}

void PipedChild::end(Deadline deadline) {
  if (wait(deadline)) return;
  ::kill(-pid_, SIGKILL);  // its group: with ssh's ProxyCommand there is more than one
  retry_eintr([&] { return ::waitpid(pid_, &status_, 0); });
  ended_ = true;
}

}  // namespace ddl::launcher
