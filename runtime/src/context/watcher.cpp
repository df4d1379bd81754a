#include "runtime/src/context/watcher.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

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

void watch(int stop_event, const std::vector<Watch>& watches) {
  // poll() ignores negative descriptors, so a place in the list is the watch's index plus one.
  std::vector<pollfd> entries{pollfd{stop_event, POLLIN, 0}};
  for (const Watch& one : watches) entries.push_back(pollfd{one.fd, POLLIN, 0});
  for (;;) {
    const int ready = retry_eintr([&] { return ::poll(entries.data(), entries.size(), -1); });
    DDL_CHECK(ready > 0, "poll: errno " + std::to_string(errno));
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].revents != 0 && !watches[i - 1].on_ready()) entries[i].fd = -1;
    }
    if (entries[0].revents != 0) return;
  }
}

}  // namespace

Status Watcher::start(std::vector<Watch> watches) {
  if (watches.empty()) return {};
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!stop_event_) return fail_errno("eventfd");
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([event = stop_event_.get(), list = std::move(watches)] { watch(event, list); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kSystem,
                std::string("starting the thread that watches for dead peers: ") + error.what());
  }
  ::pthread_setname_np(thread_.native_handle(), "ddl-watcher");
  return {};
}

void Watcher::stop() {
  if (!thread_.joinable()) return;
  DDL_CHECK(::eventfd_write(stop_event_.get(), 1) == 0, "eventfd_write: errno " + std::to_string(errno));
  thread_.join();
}

}  // namespace ddl::runtime
