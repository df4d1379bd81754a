#include "runtime/src/context/pair_memory.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "runtime/src/transport/sealed_memory.h"

namespace ddl::runtime {

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
