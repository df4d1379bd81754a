#include "runtime/src/collective/host_collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {
namespace {

/// memcpy() that allows an empty copy from or to a null pointer.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

/// Runs one call chunk by chunk. fill(offset, bytes) copies into own_slot(), take(offset, bytes) reads the slots; offset
/// and bytes are those of a whole number of elements in one rank's buffer.
template <class Fill, class Take>
Outcome run_in_chunks(Channel& channel, const Call& call, CallDeadline deadline, Fill fill, Take take) {
  if (auto begun = channel.begin(call, deadline); !begun) return begun;
  const std::size_t total = call.count * element_size(call.dtype);
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(channel.slot_bytes(), total - offset);
    fill(offset, bytes);
    if (auto exchanged = channel.exchange(); !exchanged) return exchanged;
    take(offset, bytes);
    offset += bytes;
  } while (offset < total);
  return {};
}

}  // namespace

Outcome allreduce(Channel& channel, const std::byte* send, std::byte* recv, std::uint64_t count,
                  ddl_dtype dtype, ddl_op op, CallDeadline deadline) {
  Call call = make_call(CallKind::kAllreduce, count, dtype);
  call.op = static_cast<std::uint8_t>(op);
  std::vector<const std::byte*> slots(static_cast<std::size_t>(channel.size()));
  return run_in_chunks(
      channel, call, deadline,
      [&](std::size_t offset, std::size_t bytes) { copy_bytes(channel.own_slot(), send + offset, bytes); },
      [&](std::size_t offset, std::size_t bytes) {
        for (int i = 0; i < channel.size(); ++i) slots[static_cast<std::size_t>(i)] = channel.slot(i);
        // The own part is nearer in the caller's buffer, unless the result is written there before it is read.
        const int own = channel.index();
        if (send != recv || own < 2) slots[static_cast<std::size_t>(own)] = send + offset;
        reduce_chunk({dtype, op}, slots, recv + offset, bytes / element_size(dtype));
      });
}

Outcome broadcast(Channel& channel, std::byte* buffer, std::uint64_t count, ddl_dtype dtype, int root,
                  CallDeadline deadline) {
  Call call = make_call(CallKind::kBroadcast, count, dtype);
  call.root = root;
  const bool is_root = channel.index() == root;
  return run_in_chunks(
      channel, call, deadline,
      [&](std::size_t offset, std::size_t bytes) {
        if (is_root) copy_bytes(channel.own_slot(), buffer + offset, bytes);
      },
      [&](std::size_t offset, std::size_t bytes) {
        if (!is_root) copy_bytes(buffer + offset, channel.slot(root), bytes);
      });
}

Outcome allgather(Channel& channel, const std::byte* send, std::byte* recv, std::uint64_t count,
                  ddl_dtype dtype, CallDeadline deadline) {
  const Call call = make_call(CallKind::kAllgather, count, dtype);
  const std::size_t part = count * element_size(dtype);
  return run_in_chunks(
      channel, call, deadline,
      [&](std::size_t offset, std::size_t bytes) { copy_bytes(channel.own_slot(), send + offset, bytes); },
      [&](std::size_t offset, std::size_t bytes) {
        for (int i = 0; i < channel.size(); ++i) {
          copy_bytes(recv + static_cast<std::size_t>(i) * part + offset, channel.slot(i), bytes);
        }
      });
}

Outcome barrier(Channel& channel, CallDeadline deadline) {
  Call call;
  call.kind = CallKind::kBarrier;
  if (auto begun = channel.begin(call, deadline); !begun) return begun;
  return channel.exchange();
}

}  // namespace ddl::runtime
