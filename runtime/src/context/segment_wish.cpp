#include "runtime/src/context/segment_wish.h"

#include <algorithm>
#include <cstddef>

#include "runtime/src/channel/segment.h"
#include "runtime/src/cluster/slot_areas.h"
#include "runtime/src/heap/shared_heap.h"

namespace ddl::runtime {
namespace {

/// Of all pairs of a host's ranks together, as far as no slot is smaller or larger than useful. It costs memory only where
/// it is used.
constexpr std::size_t kPairsAddressSpace = std::size_t{4} << 30;
constexpr std::size_t kLeastPairSlot = std::size_t{4} << 10;
constexpr std::size_t kMostPairSlot = std::size_t{256} << 10;

/// How large the slots of each pair of so many ranks of a host are; 0 if there are no pairs, or limits leave no room.
std::size_t pair_slot_bytes(int ranks, std::size_t slot_bytes) {
  if (ranks < 2) return 0;
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t room = has_plenty_of_address_space() ? kPairsAddressSpace : 2 * count * slot_bytes;
  const std::size_t slots = 2 * count * (count - 1);
  const std::size_t fitting =
      std::clamp(room / slots, kLeastPairSlot, kMostPairSlot) / kLineBytes * kLineBytes;
  return fitting * slots > room && !has_plenty_of_address_space() ? 0 : fitting;
}

}  // namespace

SegmentWish wish_of(const Settings& settings, const Membership& membership, bool has_heap,
                    std::uint32_t first_sequence) {
  const HostLayout& layout = membership.layout;
  SegmentWish wish;
  wish.first_sequence = first_sequence;
  wish.exchange = settings.exchange;
  // A line for every rank's part, at least.
  wish.slot_bytes = std::max(settings.staging_bytes.value_or(Settings::kHostStagingBytes),
                             static_cast<std::size_t>(membership.size) * kLineBytes);
  if (layout.host_count() > 1) {
    wish.slot_bytes = SlotAreas::of(settings.staging_bytes.value_or(Settings::kClusterStagingBytes),
                                    membership.size, layout.largest_host())
                          .slot_bytes();
  }
  const auto local = static_cast<int>(layout.local().size());
  if (has_heap) wish.heap_bytes = heap_share(local);
  wish.pair_slot_bytes = pair_slot_bytes(local, wish.slot_bytes);
  return wish;
}

}  // namespace ddl::runtime
