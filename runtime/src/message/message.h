// A message that the program sends or receives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/src/common/failure.h"

namespace ddl::runtime {

/// Owned by the handle that the program has, and by the engine until it is complete. The buffer is the program's.
struct Message {
  bool sends = false;
  std::uint32_t set = 0;  ///< the generation of the process set
  int peer = 0;           ///< its rank in the job, or DDL_ANY_RANK
  int tag = 0;            ///< or DDL_ANY_TAG
  std::byte* buffer = nullptr;
  std::uint64_t bytes = 0;
  ddl_dtype dtype = 0;
  std::uint64_t count = 0;
  /// How long a thread waits for it; 0: without limit.
  double timeout_seconds = 0.0;
  /// Of a receive from any rank: where the sender's rank in the set is stored, or null.
  std::int32_t* source = nullptr;
  /// Of a receive from any rank: the ranks of the job that the set consists of.
  std::vector<int> job_ranks;

  // Guarded by the engine; complete is also read without its lock.
  std::atomic<bool> is_complete{false};
  Outcome outcome;

  /// As messages to people name it: "message (float32, 4 elements) under tag 3".
  std::string describe() const;
};
using MessagePtr = std::shared_ptr<Message>;

/// "16 bytes (float32, 4 elements)".
std::string describe_size(std::uint64_t bytes, ddl_dtype dtype);
/// What both ranks say of a message that does not fit its receive: what was sent, and what was expected.
std::string describe_mismatch(const std::string& sender, const std::string& sent, const std::string& receiver,
                              const std::string& expected, int tag);
std::string describe_dropped(const std::string& receiver, const Message& message);

}  // namespace ddl::runtime
