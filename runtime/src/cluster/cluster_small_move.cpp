#include "runtime/src/cluster/cluster_small_move.h"

#include <algorithm>

#include "runtime/src/collective/copy_bytes.h"

namespace ddl::runtime {
namespace {

std::uint64_t elements_of(const BlockMove& move, int sender) {
  if (move.is_shared()) return move.count(sender, move.a_receiver());
  return move.sends(sender) ? move.send_offset(sender, move.ranks()) : 0;
}

}  // namespace

bool ClusterSmallMove::serves(const ClusterPlace& place, const BlockMove& move, std::size_t element) {
  const std::uint64_t most = most_riding_bytes(place) / element;
  std::uint64_t sum = 0;
  for (int sender = 0; sender < move.ranks() && sum <= most; ++sender) {
    const std::uint64_t count = elements_of(move, sender);
    sum = count > most ? count : sum + count;
  }
  return sum > 0 && sum <= most;
}

ClusterSmallMove::ClusterSmallMove(ClusterPlace place, const MoveInBuffers& work)
    : ClusterCall(place), move_(work.move), element_(work.element), send_(work.send), recv_(work.recv) {}

std::size_t ClusterSmallMove::bytes_of(int sender) const {
  return static_cast<std::size_t>(elements_of(move_, sender)) * element_;
}

void ClusterSmallMove::fill(std::uint64_t, std::byte* input) {
  copy_bytes(input, send_, bytes_of(own_rank()));
}

Route ClusterSmallMove::gather(std::uint64_t, SliceBuffers& buffers) {
  std::size_t bytes = 0;
  for (int sender = 0; own_lane() == 0 && sender < move_.ranks(); ++sender) bytes += bytes_of(sender);
  buffers.keep_value(bytes);
  std::fill(buffers.value.begin(), buffers.value.end(), std::byte{0});
  std::byte* to = buffers.value.data();
  for (int sender = 0; bytes > 0 && sender < move_.ranks(); to += bytes_of(sender++)) {
    if (layout().host_of(sender) == own_host())
      copy_bytes(to, input_of(layout().local_rank(sender)), bytes_of(sender));
  }
  return {};
}

void ClusterSmallMove::publish(std::uint64_t, SliceBuffers& buffers, std::byte* result) {
  copy_bytes(result, buffers.value.data(), buffers.value.size());
}

void ClusterSmallMove::take(std::uint64_t) {
  const int own = own_rank();
  const std::byte* from = result_of(0);
  if (!move_.receives(own)) return;
  for (int sender = 0; sender < move_.ranks(); from += bytes_of(sender++)) {
    const auto bytes = static_cast<std::size_t>(move_.count(sender, own)) * element_;
    if (bytes == 0) continue;
    const std::size_t offset = move_.send_offset(sender, own) * element_;
    std::byte* const to = recv_ + move_.recv_offset(sender, own) * element_;
    // What stands in its place already, in place, may be the caller's constant.
    if (sender != own || to != send_ + offset) copy_bytes(to, from + offset, bytes);
  }
}

}  // namespace ddl::runtime
