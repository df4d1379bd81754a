#include "runtime/src/context/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace ddl::runtime {
namespace {

// One of the few globals: pthread_atfork() knows no argument. Only the child's single thread writes it.
std::atomic<std::uint64_t> forks{0};
std::once_flag registered;

}  // namespace

std::uint64_t fork_count() {
  std::call_once(registered, [] {
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace ddl::runtime
