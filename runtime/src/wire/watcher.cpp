#include "runtime/src/wire/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <iterator>
#include <string>

#include "base/own_thread.h"
#include "runtime/src/bootstrap/rank_process.h"

namespace ddl::runtime {
Status Watcher::start() {
  wake_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_) return fail_errno("eventfd");
  auto thread = start_own_thread(kMemberThread, [this] { run(); });
  if (!thread) return fail(std::move(thread.error().during("watching for dead peers")));
  thread_ = *std::move(thread);
  return {};
}

void Watcher::run() {
  std::vector<pollfd> polled;
  std::unique_lock lock(mutex_);
  while (!stops_) {
    polled.assign(1, pollfd{wake_event_.get(), POLLIN, 0});
    for (const Entry& entry : entries_) polled.push_back(pollfd{entry.watch.fd, POLLIN, 0});
    // If watches were added or removed meanwhile, this thread was woken and builds the list again.
    const std::uint64_t seen = changes_;
    lock.unlock();
    const int ready = retry_eintr([&] { return ::poll(polled.data(), polled.size(), -1); });
    DDL_CHECK(ready > 0, "poll: errno " + std::to_string(errno));
    lock.lock();
    if (polled[0].revents != 0) {
      eventfd_t count = 0;
      (void)::eventfd_read(wake_event_.get(), &count);
    }
    if (seen != changes_) continue;
    auto entry = entries_.begin();
    for (std::size_t i = 1; i < polled.size(); ++i) {
      entry = polled[i].revents != 0 && !entry->watch.on_ready() ? entries_.erase(entry) : std::next(entry);
    }
  }
}

Result<Watcher::Ticket> Watcher::add(std::vector<Watch> watches, Ticket ticket) {
  if (watches.empty()) return ticket;
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) DDL_TRY(start());
  if (ticket == 0) ticket = ++last_ticket_;
  for (Watch& watch : watches) entries_.push_back({ticket, std::move(watch)});
  ++changes_;
  wake();
  return ticket;
}

void Watcher::remove(Ticket ticket) {
  if (ticket == 0) return;
  const std::lock_guard lock(mutex_);
  entries_.remove_if([ticket](const Entry& entry) { return entry.ticket == ticket; });
  ++changes_;
  if (thread_.joinable()) wake();
}

void Watcher::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    wake();
  }
  thread_.join();
}

void Watcher::wake() const {
  DDL_CHECK(::eventfd_write(wake_event_.get(), 1) == 0, "eventfd_write: errno " + std::to_string(errno));
}

}  // namespace ddl::runtime
