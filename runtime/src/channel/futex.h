// Sleeping on a word in shared memory (futex(2)), across processes: never FUTEX_PRIVATE.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace ddl::runtime {

/// The platform of FlagProtocol for real words and the kernel.
struct FutexPlatform {
  using Word = std::atomic<std::uint32_t>;
  using Deadline = ddl::Deadline;

  /// Sleeps while word == seen. Returns false when the deadline passed; true otherwise, also without a reason.
  bool wait(Word& word, std::uint32_t seen, Deadline deadline);
  /// Wakes all threads of all processes that sleep on word.
  void wake_all(Word& word);
};

}  // namespace ddl::runtime
