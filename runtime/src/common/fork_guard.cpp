#include "runtime/src/common/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

namespace ddl::runtime {
namespace {

// Globals, because pthread_atfork() passes no argument. Only the child's single thread writes the count.
std::atomic<std::uint64_t> forks{0};
std::once_flag registered;
std::atomic<bool> is_registered{false};
// Held over a fork, so that the child finds the list in a consistent state.
std::mutex list_mutex;
std::vector<int>& closed_in_child() {
  // Never destroyed: a fork may come after static destructors have begun.
  static auto* list = new std::vector<int>;
  return *list;
}

void before_fork() { list_mutex.lock(); }
void after_fork_in_parent() { list_mutex.unlock(); }
void after_fork_in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  for (const int fd : closed_in_child()) ::close(fd);
  closed_in_child().clear();
  list_mutex.unlock();
}

}  // namespace

std::uint64_t fork_count() {
  // Every call asks; call_once() alone would cost it more than the rest of this function.
  if (!is_registered.load(std::memory_order_acquire)) {
    std::call_once(registered, [] {
      closed_in_child();
      ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    });
    is_registered.store(true, std::memory_order_release);
  }
  return forks.load(std::memory_order_relaxed);
}

Failure inherited_by_fork() {
  return {DDL_ERROR_ABORTED, "this context belongs to the parent of process " + std::to_string(::getpid()) +
                                 "; a child that was forked without exec cannot use it"};
}

ClosedInForkedChild::ClosedInForkedChild(std::vector<int> fds) : fds_(std::move(fds)) {
  fork_count();
  const std::lock_guard lock(list_mutex);
  closed_in_child().insert(closed_in_child().end(), fds_.begin(), fds_.end());
}

ClosedInForkedChild::~ClosedInForkedChild() {
  const std::lock_guard lock(list_mutex);
  std::vector<int>& list = closed_in_child();
  for (const int fd : fds_) {
    if (const auto found = std::find(list.begin(), list.end(), fd); found != list.end()) list.erase(found);
  }
}

}  // namespace ddl::runtime
