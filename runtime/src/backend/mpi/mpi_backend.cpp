#include "runtime/src/backend/mpi/mpi_backend.h"

#include <algorithm>

#include "runtime/src/backend/mpi/mpi_moves.h"
#include "runtime/src/backend/mpi/mpi_reductions.h"
#include "runtime/src/collective/alltoallv.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/element.h"

namespace ddl::runtime {

Outcome MpiBackend::run(const Request& request, CallDeadline deadline) {
  if (const auto allowed = steps_.allows_call(); !allowed)
    return failed(DDL_ERROR_UNSUPPORTED, allowed.error().message());
  if (request.peer >= 0) return transfer(request, deadline);
  if (request.call.kind == CallKind::kAlltoallv) return alltoallv_by_mpi(request, deadline);
  if (auto agreed = agree(request.call, deadline); !agreed) return agreed;
  place().channel.pass(FaultPoint::kInRound);
  if (const auto blocks = BlockMove::of(request, steps_.ranks()))
    return move_blocks(steps_, {*blocks, known_element_size(request.dtype()), request.send, request.recv});
  return has_op(request.call.kind) ? reduce_by_mpi(steps_, request) : Outcome();
}

Outcome MpiBackend::agree(const Call& call, CallDeadline deadline) {
  Channel& channel = place().channel;
  if (auto begun = channel.begin(call, deadline, 0); !begun) return begun;
  if (auto met = steps_.meet(); !met) return met;
  if (place().layout.host_count() == 1) return Verdict::of_host(channel).outcome();
  channel.pass(FaultPoint::kBeforeHosts);
  const std::uint64_t print = call.fingerprint();
  steps_.buffers().own_print = {print, ~print};
  if (auto compared = steps_.least_prints(); !compared) return compared;
  channel.pass(FaultPoint::kAfterHosts);
  const auto& least = steps_.buffers().least_print;
  return least[0] == ~least[1] ? Outcome() : tell_mismatch(call);
}

Outcome MpiBackend::tell_mismatch(const Call& call) {
  MpiBuffers& buffers = steps_.buffers();
  buffers.own_stamp = steps_.stamp_of(call);
  buffers.stamps.resize(static_cast<std::size_t>(steps_.ranks()));
  const BlockMove blocks = BlockMove::allgather(steps_.ranks(), sizeof(CallStamp));
  auto told = move_blocks(steps_, {blocks, 1, reinterpret_cast<const std::byte*>(&buffers.own_stamp),
                                   reinterpret_cast<std::byte*>(buffers.stamps.data())});
  if (!told) return told;
  // In the order of the tree, so that every way of comparing names the same two.
  Verdict verdict;
  verdict.first = buffers.stamps.front();
  for (const auto& host : place().layout.hosts) {
    for (const int rank : host) {
      const CallStamp& stamp = buffers.stamps[static_cast<std::size_t>(rank)];
      if (verdict.has_odd != 0 || stamp.call.fingerprint() == verdict.first.call.fingerprint()) continue;
      verdict.has_odd = 1;
      verdict.odd = stamp;
    }
  }
  return verdict.outcome();
}

Outcome MpiBackend::alltoallv_by_mpi(const Request& request, CallDeadline deadline) {
  const Channel& channel = place().channel;
  return alltoallv(
      request, steps_.ranks(), place().rank, channel.self().host,
      [&](const Request& part, const BlockMove& blocks, std::size_t element, const std::byte* send,
          std::byte* recv) -> Outcome {
        if (auto agreed = agree(part.call, deadline); !agreed) return agreed;
        return move_blocks(steps_, {blocks, element, send, recv});
      },
      [&] { return channel.call().number; });
}

Outcome MpiBackend::transfer(Request request, CallDeadline deadline) {
  const bool sends = request.call.root == place().rank;
  Call call = request.call;
  call.root = place().job_ranks[static_cast<std::size_t>(call.root)];
  call.number = ++transfers_[request.peer];
  Channel& channel = place().channel;
  if (auto begun = channel.begin(call, deadline, 0); !begun) return begun;
  MpiBuffers& buffers = steps_.buffers();
  buffers.own_stamp = steps_.stamp_of(call);
  buffers.stamps.resize(1);
  auto compared = steps_.exchange(request.peer, std::as_bytes(std::span(&buffers.own_stamp, 1)),
                                  std::as_writable_bytes(std::span(buffers.stamps)), true);
  if (!compared) return compared;
  const CallStamp& theirs = buffers.stamps.front();
  if (theirs.call.fingerprint() != call.fingerprint()) {
    const bool is_first = place().rank < request.peer;
    const CallStamp& first = is_first ? buffers.own_stamp : theirs;
    return Verdict{first, is_first ? theirs : buffers.own_stamp, 1, 0}.outcome();
  }
  const std::uint64_t total = call.count * known_element_size(request.dtype());
  const std::uint64_t most = place().limits.step_bytes;
  for (std::uint64_t at = 0; at < total; at += most) {
    const std::size_t bytes = std::min(most, total - at);
    auto moved = sends ? steps_.exchange(request.peer, {request.send + at, bytes}, {}, false)
                       : steps_.exchange(request.peer, {}, {request.recv + at, bytes}, false);
    if (!moved) return moved;
  }
  return {};
}

}  // namespace ddl::runtime
