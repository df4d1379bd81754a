#include "runtime/support/in_process_transport.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/src/channel/segment.h"
#include "runtime/src/transport/sealed_memory.h"

namespace ddl::runtime::test {

InProcessTransport::InProcessTransport(const std::vector<int>& ranks, const SegmentWish& wish, int cpus)
    : doorbell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), cpus_(cpus) {
  const int count = static_cast<int>(ranks.size());
  const std::size_t bytes = Segment::bytes_for(count, wish.slot_bytes);
  auto fd = make_sealed_memory(bytes);
  DDL_CHECK(fd.has_value(), fd.error().message());
  auto memory = MappedMemory::map_shared(fd->get(), bytes);
  DDL_CHECK(memory.has_value(), memory.error().message());
  memory_ = std::make_shared<const MappedMemory>(*std::move(memory));
  Segment::create({memory_->data(), bytes}, count, wish);
  for (const int rank : ranks) members_.push_back(Member{rank, "host" + std::to_string(rank), ::getpid()});
}

Result<SharedGroup> InProcessTransport::connect(Bootstrap& bootstrap) {
  SharedGroup group;
  group.memory = memory_;
  group.members = members_;
  group.index = bootstrap.membership().local_rank();
  group.pidfds.resize(members_.size());
  group.doorbell.reset(::fcntl(doorbell_.get(), F_DUPFD_CLOEXEC, 0));
  group.cpus = cpus_;
  return group;
}

}  // namespace ddl::runtime::test
