#include "runtime/src/collective/request.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

tl::unexpected<Failure> invalid(std::string message) {
  return fail(DDL_ERROR_INVALID_ARGUMENT, std::move(message));
}

/// A buffer as one collective uses it. Elements are counted from its beginning.
struct Extent {
  const char* name = "";
  const std::byte* data = nullptr;
  std::uint64_t count = 0;  ///< 0: not used
};

/// The buffers that a rank reads and writes, and the offset of its own part in both, which in place is the same
/// memory.
struct Extents {
  Extent send{"send"};
  Extent recv{"recv"};
  std::uint64_t own_in_send = 0;
  std::uint64_t own_in_recv = 0;
  bool in_place = true;
};

/// a + b, or a * b; nullopt if that is more than a buffer can hold.
std::optional<std::uint64_t> limited_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > static_cast<std::uint64_t>(PTRDIFF_MAX))
    return std::nullopt;
  return sum;
}
std::optional<std::uint64_t> limited_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > static_cast<std::uint64_t>(PTRDIFF_MAX))
    return std::nullopt;
  return product;
}

/// The sum of the counts of the ranks before end.
std::optional<std::uint64_t> total_of(std::span<const std::uint64_t> counts, int end) {
  std::optional<std::uint64_t> sum = 0;
  for (int i = 0; i < end && sum; ++i) sum = limited_sum(*sum, counts[i]);
  return sum;
}

/// How a collective uses its buffers on this rank; nullopt if buffers of these sizes cannot exist.
std::optional<Extents> extents_of(const Request& request, int rank, int size) {
  const Call& call = request.call;
  const auto own = static_cast<std::uint64_t>(rank);
  const bool is_root = !has_root(call.kind) || call.root == rank;
  Extents extents;
  extents.send.data = request.send;
  extents.recv.data = request.recv;
  const auto all = limited_product(call.count, static_cast<std::uint64_t>(size));
  switch (call.kind) {
    case CallKind::kAllreduce:
    case CallKind::kReduce:
    case CallKind::kScan:
      extents.send.count = call.count;
      extents.recv.count = is_root ? call.count : 0;
      return extents;
    case CallKind::kBroadcast:
      extents.recv.name = "buffer";
      extents.recv.count = call.count;
      return extents;
    case CallKind::kTransfer:
      extents.send.name = extents.recv.name = "buffer";
      (is_root ? extents.send : extents.recv).count = call.count;
      return extents;
    case CallKind::kAllgather:
    case CallKind::kGather:
      if (!all) return std::nullopt;
      extents.send.count = call.count;
      extents.recv.count = is_root ? *all : 0;
      extents.own_in_recv = own * call.count;
      return extents;
    case CallKind::kScatter:
      if (!all) return std::nullopt;
      extents.send.count = is_root ? *all : 0;
      extents.recv.count = call.count;
      extents.own_in_send = own * call.count;
      return extents;
    case CallKind::kAlltoall:
      if (!all) return std::nullopt;
      extents.send.count = extents.recv.count = *all;
      return extents;
    case CallKind::kReduceScatter:
    case CallKind::kAllgatherv:
    case CallKind::kAlltoallv: {
      const auto total = total_of(request.counts, size), before = total_of(request.counts, rank);
      if (!total) return std::nullopt;
      const std::uint64_t part = request.counts[rank];
      if (call.kind == CallKind::kReduceScatter) {
        extents.send.count = *total;
        extents.own_in_send = *before;
        extents.recv.count = part;
      } else if (call.kind == CallKind::kAllgatherv) {
        extents.send.count = part;
        extents.recv.count = *total;
        extents.own_in_recv = *before;
      } else {
        extents.send.count = *total;
        extents.recv.count = request.recv_capacity;
        extents.in_place = false;
      }
      return extents;
    }
    case CallKind::kNone:
    case CallKind::kBarrier:
    case CallKind::kMakeSets:
    case CallKind::kAgree:
    case CallKind::kTimeline: break;
  }
  return extents;
}

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Outcome check_pointer(const Extent& extent, ddl_dtype dtype) {
  if (extent.count == 0) return {};
  if (extent.data == nullptr) return invalid(std::string(extent.name) + " is null");
  if (address(extent.data) % element_size(dtype) != 0) {
    return invalid(std::string(extent.name) + " is not aligned for " + dtype_name(dtype));
  }
  return {};
}

Outcome check_overlap(const Extents& extents, std::size_t element) {
  const auto end = [element](const Extent& extent) { return address(extent.data) + extent.count * element; };
  const Extent &send = extents.send, &recv = extents.recv;
  if (send.count == 0 || recv.count == 0 || address(send.data) >= end(recv) ||
      address(recv.data) >= end(send)) {
    return {};
  }
  if (extents.in_place &&
      send.data + extents.own_in_send * element == recv.data + extents.own_in_recv * element) {
    return {};
  }
  if (!extents.in_place) return invalid("send and recv overlap; they must be apart");
  if (extents.own_in_send == 0 && extents.own_in_recv == 0 && send.count == recv.count) {
    return invalid("send and recv overlap; they must be the same or apart");
  }
  return send.count < recv.count
             ? invalid("send and recv overlap; send must be this rank's part of recv or apart from it")
             : invalid("send and recv overlap; recv must be this rank's part of send or apart from it");
}

Outcome check_operation(const Call& call) {
  if (!op_applies(call.op, call.dtype))
    return invalid(std::string("there is no ") + op_name(call.op) + " of " + dtype_name(call.dtype));
  if (call.op == DDL_ADASUM && call.kind != CallKind::kAllreduce) {
    return invalid(std::string("op adasum is for allreduces alone, and this is a ") +
                   call_kind_name(call.kind));
  }
  if (call.kind == CallKind::kScan && call.op == DDL_AVERAGE) {
    return invalid("a scan has no average; use sum and divide by rank + 1");
  }
  for (const double scale : {call.prescale, call.postscale}) {
    if (!std::isfinite(scale) || scale == 0) {
      return invalid(
          "prescale and postscale are finite and not 0; initialise the struct with DDL_CALL_OPTIONS_INIT");
    }
    if (scale != 1 && call.dtype == DDL_BOOL) return invalid("bool cannot be scaled");
  }
  return {};
}

/// True for most correct calls: of no more than 2^32 elements of each rank, without scales, and with buffers that are
/// the same or so far apart that no part of one can overlap the other. The complete check takes longer than the rest
/// of a small call.
bool is_plainly_correct(const Request& request, std::size_t element, int size) {
  const Call& call = request.call;
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 32;
  if (request.counts.data() != nullptr || call.count == 0 || call.count > kMaxCount) return false;
  const bool is_usual = call.op == DDL_SUM || (call.op == DDL_AVERAGE && call.kind != CallKind::kScan);
  if (has_op(call.kind) && (!is_usual || call.dtype == DDL_BOOL || call.prescale != 1 || call.postscale != 1))
    return false;
  if (has_root(call.kind) && (call.root < 0 || call.root >= size)) return false;
  const std::uintptr_t send = address(request.send), recv = address(request.recv);
  if (send == 0 || recv == 0 || ((send | recv) & (element - 1)) != 0) return false;
  const bool is_whole = call.kind == CallKind::kAllreduce || call.kind == CallKind::kBroadcast;
  if (send == recv) return is_whole;
  const std::uint64_t most = call.count * element * (is_whole ? 1 : static_cast<std::uint64_t>(size));
  return (send < recv ? recv - send : send - recv) >= most;
}

}  // namespace

int Request::contributors_before(int end) const {
  return contributes.empty()
             ? end
             : end - static_cast<int>(std::count(contributes.begin(), contributes.begin() + end, 0));
}

UsedBuffers used_buffers(const Request& request, int rank, int size) {
  const auto extents = extents_of(request, rank, size);
  if (!extents) return {};
  return {extents->send.count == 0 ? nullptr : extents->send.data,
          extents->recv.count == 0 ? nullptr : extents->recv.data};
}

Outcome check_request(const Request& request, int rank, int size) {
  const Call& call = request.call;
  if (call.kind == CallKind::kBarrier) return {};
  const std::size_t element = known_element_size(call.dtype);
  if (is_plainly_correct(request, element, size)) return {};
  if (has_op(call.kind)) {
    if (auto operation = check_operation(call); !operation) return operation;
  }
  if (has_root(call.kind) && (call.root < 0 || call.root >= size)) {
    return invalid("root " + std::to_string(call.root) + " is not a rank of 0 to " +
                   std::to_string(size - 1));
  }
  const bool has_counts = call.kind == CallKind::kReduceScatter || call.kind == CallKind::kAllgatherv ||
                          call.kind == CallKind::kAlltoallv;
  if (has_counts && request.counts.data() == nullptr) {
    return invalid(call.kind == CallKind::kAlltoallv ? "send_counts is null" : "counts is null");
  }
  if (call.kind == CallKind::kAlltoallv && request.recv_counts == nullptr)
    return invalid("recv_counts is null");
  const auto extents = extents_of(request, rank, size);
  if (!extents || !limited_product(extents->send.count, element) ||
      !limited_product(extents->recv.count, element)) {
    return invalid("count " + std::to_string(call.count) + " does not fit into memory");
  }
  if (auto send = check_pointer(extents->send, call.dtype); !send) return send;
  if (auto recv = check_pointer(extents->recv, call.dtype); !recv) return recv;
  return check_overlap(*extents, element);
}

}  // namespace ddl::runtime
