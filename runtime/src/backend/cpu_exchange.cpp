#include "runtime/src/backend/cpu_exchange.h"

#include <optional>
#include <utility>

namespace ddl::runtime {

Outcome CpuExchange::compare(const Request& request, CallDeadline deadline) {
  Request compared = request;
  compared.only_compares = true;
  return host_.run(compared, deadline);
}

Outcome CpuExchange::gather(const void* own, void* all, std::size_t bytes, CallDeadline deadline) {
  Request request;
  request.call = make_call(CallKind::kAllgather, bytes, DDL_UINT8);
  request.call.number = number();
  request.send = static_cast<const std::byte*>(own);
  request.recv = static_cast<std::byte*>(all);
  request.job_ranks = connections_.job_ranks();
  return host_.run(request, deadline);
}

Outcome CpuExchange::broadcast(void* value, std::size_t bytes, CallDeadline deadline) {
  Request request;
  request.call = make_call(CallKind::kBroadcast, bytes, DDL_UINT8);
  request.call.number = number();
  request.send = request.recv = static_cast<std::byte*>(value);
  request.job_ranks = connections_.job_ranks();
  return host_.run(request, deadline);
}

tl::expected<std::uint64_t, Failure> CpuExchange::largest(std::uint64_t own, CallDeadline deadline,
                                                          int peer) {
  std::uint64_t result = 0;
  Request request;
  request.call = make_call(CallKind::kAllreduce, 1, DDL_UINT64, DDL_MAX);
  request.peer = peer;
  // Of two ranks, it is a call of theirs.
  if (peer < 0) request.call.number = number();
  request.element_size = sizeof own;
  request.send = reinterpret_cast<const std::byte*>(&own);
  request.recv = reinterpret_cast<std::byte*>(&result);
  request.job_ranks = connections_.job_ranks();
  DDL_TRY(host_.run(request, deadline));
  return result;
}

tl::expected<BlockMove, Failure> CpuExchange::exchange_counts(const Request& request, CallDeadline deadline) {
  const Membership& membership = connections_.membership();
  std::optional<BlockMove> data;
  const auto move = [&](const Request& step, const BlockMove& blocks) -> Outcome {
    if (!blocks.is_shared()) {
      data = blocks;
      return {};
    }
    // What every rank tells all others.
    return gather(step.send, step.recv, blocks.count(0, 0) * step.element_size, deadline);
  };
  DDL_TRY(alltoallv(request, membership.size, membership.rank, connections_.self().host, move,
                    [this] { return number(); }));
  return *std::move(data);
}

}  // namespace ddl::runtime
