// One collective call as the ranks compare it: what must be the same everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "ddl/ddl.h"

namespace ddl::runtime {

enum class CallKind : std::uint8_t {
  kNone = 0,
  kAllreduce = 1,
  kBroadcast = 2,
  kAllgather = 3,
  kBarrier = 4
};

/// "allreduce".
const char* call_kind_name(CallKind kind);

/// Plain data: it lies in shared memory, in the flag line of the rank that makes the call.
struct Call {
  CallKind kind = CallKind::kNone;
  std::uint8_t dtype = 0;
  std::uint8_t op = 0;
  std::uint8_t reserved = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;
  std::uint64_t number = 0;  ///< counts the calls of a channel from 1; not compared

  /// 64 bits over everything but the number: equal for calls that fit together.
  std::uint64_t fingerprint() const;
  /// "allreduce(sum, float32, 1000 elements)".
  std::string signature() const;
  /// "allreduce #17 (sum, float32, 1000 elements)".
  std::string describe() const;
};
static_assert(sizeof(Call) == 24);

/// A call without op, root and number.
Call make_call(CallKind kind, std::uint64_t count, ddl_dtype dtype);

}  // namespace ddl::runtime
