#include "runtime/src/shm/flag_protocol.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <string>

#include "base/error.h"

namespace ddl::runtime {

bool FutexPlatform::wait(Word& word, std::uint32_t seen, Deadline deadline) {
  timespec when{};
  if (!deadline.is_never()) {
    // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, which is libstdc++'s steady_clock.
    const auto since_epoch = deadline.when().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    when.tv_sec = static_cast<time_t>(seconds.count());
    when.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_epoch - seconds).count());
  }
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen,
                                deadline.is_never() ? nullptr : &when, nullptr, FUTEX_BITSET_MATCH_ANY);
  was_signalled = result != 0 && errno == EINTR;
  if (result == 0 || errno == EAGAIN || errno == EINTR) return true;
  DDL_CHECK(errno == ETIMEDOUT, "FUTEX_WAIT_BITSET: errno " + std::to_string(errno));
  return false;
}

void FutexPlatform::wake_all(Word& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ddl::runtime
