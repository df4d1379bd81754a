#include "runtime/src/collective/cluster_move.h"

#include <algorithm>
#include <span>

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/staging.h"

namespace ddl::runtime {
namespace {

/// The number of elements of every block that fit into a chunk on every host: into the senders' input areas, and,
/// slice by slice, into the lanes' result areas.
std::uint64_t elements_per_chunk(const BlockMove& move, const HostLayout& layout, std::size_t area_elements) {
  std::uint64_t max_parts = 0;
  const auto all_senders = static_cast<std::uint64_t>(move.only_sender() ? 1 : move.size());
  for (int host = 0; host < layout.host_count(); ++host) {
    const auto& here = layout.hosts[host];
    const auto sends = [&move](int rank) { return move.sends(rank); };
    const auto receives = [&move](int rank) { return move.receives(rank); };
    auto receivers = static_cast<std::uint64_t>(std::count_if(here.begin(), here.end(), receives));
    const auto senders =
        all_senders - static_cast<std::uint64_t>(std::count_if(here.begin(), here.end(), sends));
    if (move.is_shared()) receivers = std::min<std::uint64_t>(receivers, 1);
    max_parts = std::max(max_parts, senders * receivers);
  }
  const auto lanes = static_cast<std::uint64_t>(layout.lane_count());
  const std::uint64_t by_input = area_elements / static_cast<std::uint64_t>(move.blocks_per_sender());
  // A slice is up to one element longer than its fair part.
  const std::uint64_t in_slices = max_parts == 0 ? area_elements : area_elements / max_parts;
  DDL_CHECK(by_input >= 1 && in_slices >= 1, std::to_string(area_elements) + " elements");
  const std::uint64_t by_result = std::max<std::uint64_t>((in_slices - 1) * lanes, 1);
  return std::max<std::uint64_t>(std::min({move.longest(), by_input, by_result}), 1);
}

}  // namespace

ClusterMove::ClusterMove(ClusterContext context, const MoveInBuffers& work)
    : ClusterCall(context),
      work_(work),
      root_host_(work_.move.is_broadcast() ? layout().host_of(*work.move.only_sender()) : 0),
      per_chunk_(elements_per_chunk(work.move, layout(), area_bytes() / work.element)) {}

template <class Each>
std::size_t ClusterMove::for_parts(int from_host, int to_host, std::uint64_t chunk, int lane, std::size_t at,
                                   Each each) const {
  for (const int from : ranks_on(from_host)) {
    if (!work_.move.sends(from)) continue;
    for (const int to : ranks_on(to_host)) {
      if (!work_.move.receives(to)) continue;
      Part part{from, to, {}, at, 0};
      const ElementRange range = work_.move.part(from, to, chunk, per_chunk_);
      part.slice = even_part(range.count, lane, layout().lane_count());
      part.bytes = part.slice.count * work_.element;
      each(part);
      at += part.bytes;
      if (work_.move.is_shared()) break;  // sent once for all receivers of the host
    }
  }
  return at;
}

template <class Each>
std::size_t ClusterMove::for_arriving(std::uint64_t chunk, int lane, Each each) const {
  std::size_t at = 0;
  for (int host = 0; host < host_count(); ++host) {
    if (host != own_host()) at = for_parts(host, own_host(), chunk, lane, at, each);
  }
  return at;
}

std::byte* ClusterMove::destination_of(int from, std::uint64_t chunk) const {
  const int own = own_rank();
  return work_.recv +
         (work_.move.recv_offset(from, own) + work_.move.part(from, own, chunk, per_chunk_).first) *
             work_.element;
}

void ClusterMove::fill(std::uint64_t chunk, std::byte* input) {
  const int own = own_rank();
  for (int to = 0; to < work_.move.size(); ++to) {
    const ElementRange part = work_.move.part(own, to, chunk, per_chunk_);
    if (part.count == 0) continue;
    stage_bytes(channel(), input + input_at(to),
                work_.send + (work_.move.send_offset(own, to) + part.first) * work_.element,
                part.count * work_.element);
    if (work_.move.is_shared()) return;
  }
}

void ClusterMove::take_inputs(std::uint64_t chunk) {
  const int own = own_rank();
  for (int i = 0; i < local_size(); ++i) {
    const int from = ranks_on(own_host())[i];
    const ElementRange part = work_.move.part(from, own, chunk, per_chunk_);
    if (part.count == 0) continue;
    std::byte* const to = destination_of(from, chunk);
    // In a call in place, the own block is already at its destination.
    const bool is_there =
        from == own && to == work_.send + (work_.move.send_offset(own, own) + part.first) * work_.element;
    if (!is_there) copy_bytes(to, input_of(i) + input_at(own), part.count * work_.element);
  }
}

Route ClusterMove::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const auto local_of = [this](int rank) { return layout().local_rank(rank); };
  if (work_.move.is_broadcast()) {
    const int root = *work_.move.only_sender();
    const ElementRange part = work_.move.part(root, root, chunk, per_chunk_);
    const ElementRange slice = even_part(part.count, own_lane(), layout().lane_count());
    const std::size_t bytes = slice.count * work_.element;
    buffers.keep_value(bytes);
    if (own_host() == root_host_) {
      copy_bytes(buffers.value.data(), input_of(local_of(root)) + slice.first * work_.element, bytes);
    }
    return route_of(broadcast_steps(host_count(), own_host(), root_host_), bytes);
  }
  Stage stage;
  std::size_t sent = 0, arriving = 0;
  buffers.keep_value(0);
  for (int distance = 1; distance < host_count(); ++distance) {
    const int host = (own_host() + distance) % host_count();
    // A shared block is the same for every host, so it lies there once.
    const std::size_t first = work_.move.is_shared() ? 0 : sent;
    const std::size_t end = for_parts(own_host(), host, chunk, own_lane(), first, [&](const Part& part) {
      if (buffers.value.size() < part.at + part.bytes) buffers.keep_value(part.at + part.bytes);
      copy_bytes(buffers.value.data() + part.at,
                 input_of(local_of(part.from)) + input_at(part.to) + part.slice.first * work_.element,
                 part.bytes);
    });
    sent = std::max(sent, end);
    stage.transfers.push_back({host, {first, end - first}, {}, Merge::kAside});
  }
  // Received data lie in the order of the hosts, as for_arriving() computes the offsets.
  for (int host = 0; host < host_count(); ++host) {
    if (host == own_host()) continue;
    const std::size_t end = for_parts(host, own_host(), chunk, own_lane(), arriving, [](const Part&) {});
    const auto index = static_cast<std::size_t>((host - own_host() + host_count()) % host_count() - 1);
    stage.transfers[index].recv = {arriving, end - arriving};
    arriving = end;
  }
  return {stage};
}

void ClusterMove::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) {
  if (work_.move.is_broadcast()) {
    if (own_host() != root_host_) stage_bytes(channel(), result, buffers.value.data(), buffers.value.size());
    return;
  }
  stage_bytes(channel(), result, buffers.received.data(),
              for_arriving(chunk, own_lane(), [](const Part&) {}));
}

void ClusterMove::take(std::uint64_t chunk) {
  const int own = own_rank();
  if (!work_.move.receives(own)) return;
  for (int lane = 0; lane < layout().lane_count(); ++lane) {
    for_arriving(chunk, lane, [&](const Part& part) {
      if (part.to != own && !work_.move.is_shared()) return;
      copy_bytes(destination_of(part.from, chunk) + part.slice.first * work_.element,
                 result_of(lane) + part.at, part.bytes);
    });
  }
}

namespace {

/// The value of a route is not const, because it may be received into; here it is only read.
std::span<std::byte> sent_from(const std::byte* bytes, std::size_t size) {
  return {const_cast<std::byte*>(bytes), size};
}

}  // namespace

ClusterDirectMove::ClusterDirectMove(ClusterContext context, const MoveInBuffers& work)
    : ClusterCall(context),
      work_(work),
      receives_aside_(work.send == work.recv && !work.move.is_shared() && !work.move.only_sender()),
      per_chunk_(longest_slice() / work.element) {}

std::size_t ClusterDirectMove::longest_slice() const {
  // A host that forwards a broadcast waits for a complete chunk first.
  return work_.move.is_broadcast() && host_count() > 2 ? area_bytes() : unstaged_bytes();
}

ByteRange ClusterDirectMove::in_send(int from, int to, std::uint64_t chunk) const {
  const ElementRange part = work_.move.part(from, to, chunk, per_chunk_);
  return {(work_.move.send_offset(from, to) + part.first) * work_.element, part.count * work_.element};
}

ByteRange ClusterDirectMove::in_recv(int from, int to, std::uint64_t chunk) const {
  const ElementRange part = work_.move.part(from, to, chunk, per_chunk_);
  return {(work_.move.recv_offset(from, to) + part.first) * work_.element, part.count * work_.element};
}

void ClusterDirectMove::take_inputs(std::uint64_t chunk) {
  const int own = own_rank();
  const ByteRange from = in_send(own, own, chunk), to = in_recv(own, own, chunk);
  // In a call in place both are the same bytes, and copy_bytes() does nothing.
  if (to.count > 0) copy_bytes(work_.recv + to.first, work_.send + from.first, to.count);
}

Route ClusterDirectMove::gather(std::uint64_t chunk, SliceBuffers& buffers) {
  const int own = own_rank();
  if (work_.move.is_broadcast()) {
    const int root = *work_.move.only_sender();
    const ByteRange part = in_send(root, own, chunk);
    buffers.value = own == root ? sent_from(work_.send + part.first, part.count)
                                : std::span(work_.recv + part.first, part.count);
    return route_of(broadcast_steps(host_count(), own_host(), layout().host_of(root)), part.count);
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
  buffers.value = sent_from(work_.send, sent);
  if (!receives_aside_) buffers.received = {work_.recv, arriving};
  return {stage};
}

void ClusterDirectMove::publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte*) {
  if (!receives_aside_) return;
  std::size_t arrived = 0;
  for (int distance = 1; distance < host_count(); ++distance) {
    const int host = (own_host() + distance) % host_count();
    const ByteRange to = in_recv(rank_on(host), own_rank(), chunk);
    copy_bytes(work_.recv + to.first, buffers.received.data() + arrived, to.count);
    arrived += to.count;
  }
}

namespace {

std::uint64_t elements_of(const BlockMove& move, int sender) {
  if (move.is_shared()) return move.count(sender, move.a_receiver());
  return move.sends(sender) ? move.send_offset(sender, move.size()) : 0;
}

}  // namespace

bool ClusterSmallMove::can_run(const ClusterContext& context, const BlockMove& move, std::size_t element) {
  // In an alltoall between n hosts, a step carries 1 / (2 n) of all blocks, so all of them may be n times as much.
  const bool is_for_each =
      !move.is_shared() && move.is_even() && !move.only_sender() && !move.only_receiver();
  const std::size_t max_bytes =
      is_for_each
          ? std::min(max_piggyback_bytes(context) * context.layout.host_count(), context.areas.area_bytes)
          : max_piggyback_bytes(context);
  const std::uint64_t max_elements = max_bytes / element;
  std::uint64_t sum = 0;
  for (int sender = 0; sender < move.size() && sum <= max_elements; ++sender) {
    const std::uint64_t count = elements_of(move, sender);
    sum = count > max_elements ? count : sum + count;
  }
  return sum > 0 && sum <= max_elements;
}

ClusterSmallMove::ClusterSmallMove(ClusterContext context, const MoveInBuffers& work)
    : ClusterCall(context), work_(work) {
  std::size_t end = 0;
  for (int sender = 0; sender < work_.move.size(); ++sender) {
    offsets_.push_back(end);
    end += bytes_of(sender);
  }
  offsets_.push_back(end);
}

template <class Each>
void ClusterSmallMove::for_blocks(const TreeTraffic& traffic, Each each) const {
  const BlockMove& move = work_.move;
  const auto some = [&each](std::size_t offset, std::size_t bytes) {
    if (bytes > 0) each(offset, bytes);
  };
  const bool wants_shared =
      move.is_shared() && std::any_of(traffic.to.begin(), traffic.to.end(), [&](int host) {
        return std::any_of(ranks_on(host).begin(), ranks_on(host).end(),
                           [&](int rank) { return move.receives(rank); });
      });
  const bool is_even = move.is_even();
  const std::uint64_t longest = move.longest();
  std::vector<std::uint64_t> offsets;  // of one sender's blocks, if their lengths differ
  for (const int host : traffic.from) {
    for (const int sender : ranks_on(host)) {
      const std::size_t at = offsets_[static_cast<std::size_t>(sender)];
      if (wants_shared) some(at, bytes_of(sender));
      if (move.is_shared() || !move.sends(sender)) continue;
      if (!is_even) {
        offsets.assign(1, 0);
        for (int rank = 0; rank < move.size(); ++rank)
          offsets.push_back(offsets.back() + move.count(sender, rank));
      }
      for (const int to : traffic.to) {
        for (const int receiver : ranks_on(to)) {
          const auto index = static_cast<std::size_t>(receiver);
          const std::uint64_t offset = is_even ? index * longest : offsets[index];
          some(at + offset * work_.element, move.count(sender, receiver) * work_.element);
        }
      }
    }
  }
}

std::span<const std::byte> ClusterSmallMove::sent_with(const TreeStep& step, SliceBuffers& buffers) {
  packed_.clear();
  if (buffers.value.empty()) return packed_;
  for_blocks(step.sent, [&](std::size_t offset, std::size_t bytes) {
    const auto part = buffers.value.subspan(offset, bytes);
    packed_.insert(packed_.end(), part.begin(), part.end());
  });
  return packed_;
}

std::size_t ClusterSmallMove::received_with(const TreeStep& step, const SliceBuffers& buffers) const {
  std::size_t sum = 0;
  if (!buffers.value.empty())
    for_blocks(step.received, [&](std::size_t, std::size_t bytes) { sum += bytes; });
  return sum;
}

void ClusterSmallMove::merge_received(const TreeStep& step, SliceBuffers& buffers) {
  const std::byte* from = buffers.received.data();
  for_blocks(step.received, [&](std::size_t offset, std::size_t bytes) {
    copy_bytes(buffers.value.data() + offset, from, bytes);
    from += bytes;
  });
}

std::size_t ClusterSmallMove::bytes_of(int sender) const {
  return static_cast<std::size_t>(elements_of(work_.move, sender)) * work_.element;
}

void ClusterSmallMove::fill(std::uint64_t, std::byte* input) {
  copy_bytes(input, work_.send, bytes_of(own_rank()));
}

Route ClusterSmallMove::gather(std::uint64_t, SliceBuffers& buffers) {
  // One lane moves it all.
  buffers.keep_value(own_lane() == 0 ? offsets_.back() : 0);
  if (buffers.value.empty()) return {};
  for (const int sender : ranks_on(own_host())) {
    copy_bytes(buffers.value.data() + offsets_[static_cast<std::size_t>(sender)],
               input_of(layout().local_rank(sender)), bytes_of(sender));
  }
  return {};
}

void ClusterSmallMove::publish(std::uint64_t, SliceBuffers& buffers, std::byte* result) {
  if (buffers.value.empty()) return;
  TreeTraffic arrived{{}, {own_host()}};
  for (int host = 0; host < host_count(); ++host) arrived.from.push_back(host);
  for_blocks(arrived, [&](std::size_t offset, std::size_t bytes) {
    copy_bytes(result + offset, buffers.value.data() + offset, bytes);
  });
}

void ClusterSmallMove::take(std::uint64_t) {
  const int own = own_rank();
  const std::byte* from = result_of(0);
  if (!work_.move.receives(own)) return;
  for (int sender = 0; sender < work_.move.size(); from += bytes_of(sender++)) {
    const auto bytes = static_cast<std::size_t>(work_.move.count(sender, own)) * work_.element;
    if (bytes == 0) continue;
    const std::size_t offset = work_.move.send_offset(sender, own) * work_.element;
    std::byte* const to = work_.recv + work_.move.recv_offset(sender, own) * work_.element;
    // In a call in place, the own block is already at its destination, in memory that may not be writable.
    if (sender != own || to != work_.send + offset) copy_bytes(to, from + offset, bytes);
  }
}

}  // namespace ddl::runtime
