#include "runtime/support/in_process_transport.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime::test {

void InProcessMemory::add(const Membership& membership, const SegmentConfig& config) {
  Group group;
  group.doorbell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int count = static_cast<int>(membership.local_members().size());
  const std::size_t bytes = Segment::bytes_for(count, config);
  auto fd = make_sealed_memory(bytes);
  DDL_CHECK(fd.has_value(), fd.error().message());
  auto memory = MappedMemory::map_shared(fd->get(), bytes);
  DDL_CHECK(memory.has_value(), memory.error().message());
  group.memory = std::make_shared<const MappedMemory>(*std::move(memory));
  group.segment = Segment::create({group.memory->data(), bytes}, count, config);
  group.segment.set_leaders(plan_groups(config.exchange, count, cpus_, {}));
  for (const int rank : membership.local_members())
    group.members.push_back(Member{rank, "host" + std::to_string(rank), ::getpid()});
  const std::lock_guard lock(mutex_);
  groups_.insert_or_assign(key_of(membership), std::move(group));
}

const InProcessMemory::Group& InProcessMemory::group(const Membership& membership) const {
  const std::lock_guard lock(mutex_);
  return groups_.at(key_of(membership));
}

Status InProcessTransport::publish(Bootstrap& bootstrap, const SegmentConfig& config) {
  if (bootstrap.membership().local_rank() == 0) memory_.add(bootstrap.membership(), config);
  return {};
}

Result<SharedGroup> InProcessTransport::connect(Bootstrap& bootstrap, const ConnectLimit&) {
  const InProcessMemory::Group& made = memory_.group(bootstrap.membership());
  SharedGroup group;
  group.memory = made.memory;
  group.segment = made.segment;
  group.members = made.members;
  group.index = bootstrap.membership().local_rank();
  group.pidfds.resize(made.members.size());
  group.doorbell.reset(::fcntl(made.doorbell.get(), F_DUPFD_CLOEXEC, 0));
  group.cpus = memory_.cpus();
  return group;
}

}  // namespace ddl::runtime::test
