#include "runtime/support/in_process_transport.h"

#include <unistd.h>

#include "runtime/src/channel/segment.h"
#include "runtime/src/transport/sealed_memory.h"

namespace ddl::runtime::test {

InProcessTransport::InProcessTransport(int ranks, const SegmentWish& wish, int cpus) : cpus_(cpus) {
  const std::size_t bytes = Segment::bytes_for(ranks, wish.slot_bytes);
  auto fd = make_sealed_memory(bytes);
  DDL_CHECK(fd.has_value(), fd.error().message());
  auto memory = MappedMemory::map_shared(fd->get(), bytes);
  DDL_CHECK(memory.has_value(), memory.error().message());
  memory_ = std::make_shared<const MappedMemory>(*std::move(memory));
  Segment::create({memory_->data(), bytes}, ranks, wish);
  for (int rank = 0; rank < ranks; ++rank) {
    members_.push_back(Member{rank, "host" + std::to_string(rank), ::getpid()});
  }
}

Result<SharedGroup> InProcessTransport::connect(Bootstrap& bootstrap, const SegmentWish&) {
  SharedGroup group;
  group.memory = memory_;
  group.members = members_;
  group.index = bootstrap.membership().rank;
  group.pidfds.resize(members_.size());
  group.cpus = cpus_;
  return group;
}

}  // namespace ddl::runtime::test
