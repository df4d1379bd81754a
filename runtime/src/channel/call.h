// One collective call as the ranks compare it: what must be the same everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ddl/ddl.h"

namespace ddl::runtime {

enum class CallKind : std::uint8_t {
  kNone = 0,
  kAllreduce,
  kReduce,
  kReduceScatter,
  kScan,
  kBroadcast,
  kAllgather,
  kAllgatherv,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kTransfer,  ///< of a pair: what one sends, the other receives
  kBarrier,
  kMakeSets,  ///< the exchange in which process sets come about
};

/// "allreduce".
const char* call_kind_name(CallKind kind);
/// Whether elements are combined.
constexpr bool has_op(CallKind kind) { return kind >= CallKind::kAllreduce && kind <= CallKind::kScan; }
/// Whether one rank stands out.
constexpr bool has_root(CallKind kind) {
  return kind == CallKind::kReduce || kind == CallKind::kBroadcast || kind == CallKind::kGather ||
         kind == CallKind::kScatter || kind == CallKind::kTransfer;
}

/// Plain data: it lies in shared memory, beside the flag line of the rank that makes the call. What a call does not have
/// stays as it is here.
struct Call {
  CallKind kind = CallKind::kNone;
  std::uint8_t dtype = 0;
  std::uint8_t op = 0;
  std::uint8_t algorithm = 0;  ///< an Algorithm that the user has named (collective/algorithm.h)
  std::int32_t root = 0;
  std::uint64_t count = 0;   ///< elements; where every rank has its own number, the sum
  std::uint64_t counts = 0;  ///< digest_of() those numbers
  double prescale = 1.0;
  double postscale = 1.0;
  std::uint64_t number = 0;  ///< counts the calls of a channel from 1; not compared

  /// 64 bits over everything but the number: equal for calls that fit together.
  std::uint64_t fingerprint() const;
  /// "allreduce(sum, float32, 1000 elements)".
  std::string signature() const;
  /// "allreduce #17 (sum, float32, 1000 elements)".
  std::string describe() const;
};
static_assert(sizeof(Call) == 48);

/// A call without op, root and number.
Call make_call(CallKind kind, std::uint64_t count, ddl_dtype dtype);

/// 64 bits over numbers in their order.
std::uint64_t digest_of(std::span<const std::uint64_t> numbers);

}  // namespace ddl::runtime
