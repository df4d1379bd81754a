#include "runtime/src/context/set_memory.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cstddef>

#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/shared_heap.h"

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

Status PairMemory::is_usable(const Membership&) const {
  if (other_ < 0 || set_.segment.has_pairs()) return {};
  return fail(ErrorCode::kUnavailable,
              "a limit (ulimit -v, ulimit -f) leaves no room for the memory of so many pairs of ranks");
}

Status PairMemory::offer(Bootstrap&, const SegmentWish& wish) {
  wish_ = wish;
  return {};
}

Result<SharedGroup> PairMemory::connect(Bootstrap& bootstrap, const ConnectLimit&) {
  SharedGroup group;
  const int own = set_.index;
  const auto member = [this](int index) { return set_.members[static_cast<std::size_t>(index)]; };
  if (other_ < 0) {
    group.members = {member(own)};
    group.members.front().rank = bootstrap.membership().rank;
    DDL_TRY(make_own(group));
  } else {
    group.memory = set_.memory;
    group.segment = set_.segment.pair(own, other_);
    group.index = index_in_pair(own, other_);
    group.members = {member(std::min(own, other_)), member(std::max(own, other_))};
    for (std::size_t i = 0; i < group.members.size(); ++i) group.members[i].rank = static_cast<int>(i);
  }
  group.pidfds.resize(group.members.size());
  group.cpus = set_.cpus;
  // Of this process alone. The other one's rings when its set is aborted, which an abort of the pair sees to.
  group.doorbell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!group.doorbell) return fail_errno("eventfd");
  return group;
}

Status PairMemory::make_own(SharedGroup& group) const {
  const std::size_t bytes = Segment::bytes_for(1, wish_);
  auto fd = make_sealed_memory(bytes);
  if (!fd) return fail(std::move(fd.error()));
  auto memory = MappedMemory::map_shared(fd->get(), bytes);
  if (!memory) return fail(std::move(memory.error()));
  group.memory = std::make_shared<const MappedMemory>(*std::move(memory));
  group.segment = Segment::create({group.memory->data(), bytes}, 1, wish_);
  return {};
}

}  // namespace ddl::runtime
