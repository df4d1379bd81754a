#include "runtime/src/channel/call.h"

#include "base/text.h"
#include "runtime/src/collective/element.h"

namespace ddl::runtime {
namespace {

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every input bit moves every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// "sum, float32, 1000 elements"; "" for a barrier.
std::string arguments(const Call& call) {
  if (call.kind == CallKind::kBarrier || call.kind == CallKind::kNone) return "";
  std::string text;
  if (call.kind == CallKind::kAllreduce) text += std::string(op_name(call.op)) + ", ";
  if (call.kind == CallKind::kBroadcast) text += "root " + std::to_string(call.root) + ", ";
  return text + dtype_name(call.dtype) + ", " + counted(static_cast<std::int64_t>(call.count), "element");
}

}  // namespace

const char* call_kind_name(CallKind kind) {
  switch (kind) {
    case CallKind::kNone: return "nothing";
    case CallKind::kAllreduce: return "allreduce";
    case CallKind::kBroadcast: return "broadcast";
    case CallKind::kAllgather: return "allgather";
    case CallKind::kBarrier: return "barrier";
  }
  return "unknown collective";
}

std::uint64_t Call::fingerprint() const {
  const std::uint64_t what = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
                             static_cast<std::uint64_t>(op) << 16 |
                             static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32;
  return mix(mix(what) ^ count);
}

std::string Call::signature() const {
  return std::string(call_kind_name(kind)) + "(" + arguments(*this) + ")";
}

std::string Call::describe() const {
  const std::string text = arguments(*this);
  return std::string(call_kind_name(kind)) + " #" + std::to_string(number) +
         (text.empty() ? "" : " (" + text + ")");
}

Call make_call(CallKind kind, std::uint64_t count, ddl_dtype dtype) {
  Call call;
  call.kind = kind;
  call.count = count;
  call.dtype = static_cast<std::uint8_t>(dtype);
  return call;
}

}  // namespace ddl::runtime
