#include "runtime/src/context/peer_watcher.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace ddl::runtime {
namespace {

/// Blocks all signals of the calling thread while it lives: a thread started meanwhile takes none from the program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

void watch(int stop_event, const std::vector<UniqueFd>& pidfds, const std::function<void(int)>& on_end) {
  // poll() ignores negative descriptors, so a place in the list is the peer's index plus one.
  std::vector<pollfd> entries{pollfd{stop_event, POLLIN, 0}};
  for (const UniqueFd& pidfd : pidfds) entries.push_back(pollfd{pidfd.get(), POLLIN, 0});
  for (;;) {
    const int ready = retry_eintr([&] { return ::poll(entries.data(), entries.size(), -1); });
    DDL_CHECK(ready > 0, "poll: errno " + std::to_string(errno));
    if (entries[0].revents != 0) return;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents == 0) continue;
      entries[i].fd = -1;
      on_end(static_cast<int>(i) - 1);
    }
  }
}

}  // namespace

Status PeerWatcher::start(std::vector<UniqueFd> pidfds, std::function<void(int)> on_end) {
  if (std::none_of(pidfds.begin(), pidfds.end(),
                   [](const UniqueFd& pidfd) { return static_cast<bool>(pidfd); })) {
    return {};
  }
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!stop_event_) return fail_errno("eventfd");
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([event = stop_event_.get(), peers = std::move(pidfds),
                           callback = std::move(on_end)] { watch(event, peers, callback); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kSystem,
                std::string("starting the thread that watches for dead peers: ") + error.what());
  }
  ::pthread_setname_np(thread_.native_handle(), "ddl-watcher");
  return {};
}

void PeerWatcher::stop() {
  if (!thread_.joinable()) return;
  DDL_CHECK(::eventfd_write(stop_event_.get(), 1) == 0, "eventfd_write: errno " + std::to_string(errno));
  thread_.join();
}

}  // namespace ddl::runtime
