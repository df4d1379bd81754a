#include "runtime/src/cluster/cluster_direct_move.h"

#include <algorithm>
#include <span>

#include "runtime/src/collective/copy_bytes.h"

namespace ddl::runtime {
namespace {

/// A route sends from what it may also receive into; here nothing is.
std::span<std::byte> sent_from(const std::byte* bytes, std::size_t size) {
  return {const_cast<std::byte*>(bytes), size};
}

}  // namespace

ClusterDirectMove::ClusterDirectMove(ClusterPlace place, const MoveInBuffers& work)
    : ClusterCall(place),
      move_(work.move),
      element_(work.element),
      send_(work.send),
      recv_(work.recv),
      is_broadcast_(work.move.is_broadcast()),
      receives_aside_(work.send == work.recv && !work.move.is_shared() && !work.move.only_sender()),
      per_chunk_(longest_slice() / work.element) {}

std::size_t ClusterDirectMove::longest_slice() const {
  // A host that passes a broadcast on waits for the whole of a chunk first.
  return is_broadcast_ && host_count() > 2 ? area_bytes() : unstaged_bytes();
}

ByteRange ClusterDirectMove::in_send(int from, int to, std::uint64_t chunk) const {
  const ElementRange piece = move_.piece(from, to, chunk, per_chunk_);
  return {(move_.send_offset(from, to) + piece.first) * element_, piece.count * element_};
}

ByteRange ClusterDirectMove::in_recv(int from, int to, std::uint64_t chunk) const {
  const ElementRange piece = move_.piece(from, to, chunk, per_chunk_);
  return {(move_.recv_offset(from, to) + piece.first) * element_, piece.count * element_};
}

void ClusterDirectMove::take_inputs(std::uint64_t chunk) {
  const int own = own_rank();
  const ByteRange from = in_send(own, own, chunk), to = in_recv(own, own, chunk);
  // What stands in its place already, in place, is not copied onto itself.
  if (to.count > 0) copy_bytes(recv_ + to.first, send_ + from.first, to.count);
}

Route ClusterDirectMove::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const int own = own_rank();
  if (is_broadcast_) {
    const int root = *move_.only_sender();
    const ByteRange piece = in_send(root, own, chunk);
    buffers.value = own == root ? sent_from(send_ + piece.first, piece.count)
                                : std::span(recv_ + piece.first, piece.count);
    return route_of(broadcast_steps(host_count(), own_host(), layout().host_of(root)), piece.count);
  }
  Stage stage;
  std::size_t sent = 0, arriving = 0;
  for (int distance = 1; distance < host_count(); ++distance) {
    const int host = (own_host() + distance) % host_count();
    ByteRange arrives = in_recv(rank_on(host), own, chunk);
    if (receives_aside_) arrives.first = arriving;
    if (arrives.count > 0) arriving = std::max(arriving, arrives.first + arrives.count);
    const ByteRange leaves = in_send(own, rank_on(host), chunk);
    if (leaves.count > 0) sent = std::max(sent, leaves.first + leaves.count);
    stage.transfers.push_back({host, leaves, arrives, Merge::kAside});
  }
  buffers.value = sent_from(send_, sent);
  if (!receives_aside_) buffers.received = {recv_, arriving};
  return {stage};
}

void ClusterDirectMove::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte*) {
  if (!receives_aside_) return;
  std::size_t arrived = 0;
  for (int distance = 1; distance < host_count(); ++distance) {
    const int host = (own_host() + distance) % host_count();
    const ByteRange to = in_recv(rank_on(host), own_rank(), chunk);
    copy_bytes(recv_ + to.first, buffers.received.data() + arrived, to.count);
    arrived += to.count;
  }
}

}  // namespace ddl::runtime
