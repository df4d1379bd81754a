#include "runtime/src/shm/shared_memory_transport.h"

#include <unistd.h>

#include <algorithm>

#include "base/cpu_set.h"
#include "base/fd.h"
#include "base/text.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/wire_up.h"

namespace ddl::runtime {
namespace {

/// Descriptors before those of the members: the memory's and the doorbell's.
constexpr std::size_t kSharedFds = 2;

Result<SharedGroup> receive_group(int socket, const Membership& membership) {
  std::vector<UniqueFd> fds;
  Welcome welcome;
  DDL_TRY(receive_exactly(socket, writable_bytes_of(welcome), fds));
  const std::size_t count = membership.local_members().size();
  if (welcome.magic != kWireUpMagic || welcome.version != kWireUpVersion ||
      welcome.members != static_cast<std::int32_t>(count)) {
    return fail(ErrorCode::kProtocol, "the leader counts other ranks or uses another version of libddl");
  }
  std::vector<MemberEntry> entries(count);
  DDL_TRY(receive_exactly(socket, std::as_writable_bytes(std::span(entries)), fds));
  // The memory, the doorbell and one pidfd per member. The first batch came with the message itself.
  const std::size_t batches = (kSharedFds + count + kMaxPassedFds - 1) / kMaxPassedFds;
  std::vector<std::byte> further(batches - 1);
  DDL_TRY(receive_exactly(socket, further, fds));
  if (fds.size() != kSharedFds + count) {
    return fail(ErrorCode::kProtocol, "the leader passed " + std::to_string(fds.size()) +
                                          " descriptors instead of " + std::to_string(kSharedFds + count));
  }

  DDL_ASSIGN(bytes, check_sealed_memory(fds.front().get()));
  DDL_ASSIGN(memory, MappedMemory::map_shared(fds.front().get(), bytes));
  DDL_ASSIGN(segment, Segment::open({memory.data(), memory.size()}));
  if (segment.size() != welcome.members) {
    return fail(ErrorCode::kProtocol, "the shared segment is laid out for other ranks");
  }

  SharedGroup group;
  group.memory = std::make_shared<const MappedMemory>(std::move(memory));
  group.segment = segment;
  group.doorbell = std::move(fds[1]);
  group.cpus = welcome.cpus;
  for (std::size_t i = 0; i < count; ++i) {
    if (entries[i].rank != membership.local_members()[i]) {
      return fail(ErrorCode::kProtocol, "the leader orders the ranks differently");
    }
    group.members.push_back(Member{entries[i].rank, entries[i].host.str(), entries[i].pid});
    group.pidfds.push_back(std::move(fds[kSharedFds + i]));
    if (entries[i].rank == membership.rank) {
      group.index = static_cast<int>(i);
      group.pidfds.back().reset();
    }
  }
  return group;
}

}  // namespace

Result<SharedGroup> join_wire_up(const Membership& membership, const Rendezvous& rendezvous,
                                 const ConnectLimit& limit, FaultInjector& fault) {
  DDL_ASSIGN(socket, connect_local(rendezvous.socket_name, limit.deadline));
  // Another process may have taken the name after the leader died.
  DDL_ASSIGN(leader, peer_credentials(socket.get()));
  if (leader.uid != ::geteuid()) {
    return fail(ErrorCode::kPermissionDenied,
                "the local leader's socket belongs to user " + std::to_string(leader.uid));
  }
  Hello hello;
  hello.nonce = rendezvous.nonce;
  hello.rank = membership.rank;
  hello.host = HostField::of(membership.host);
  const CpuSet cpus = CpuSet::allowed();
  std::copy_n(cpus.words().begin(), std::min(cpus.words().size(), hello.cpus.size()), hello.cpus.begin());
  DDL_TRY(send_with_fds(socket.get(), bytes_of(hello), {}));
  fault.pass(FaultPoint::kAfterHello);

  DDL_TRY(wait_readable(socket.get(), limit));
  auto group = receive_group(socket.get(), membership);
  if (!group) return group;
  fault.pass(FaultPoint::kAfterWelcome);
  std::vector<UniqueFd> none;
  std::byte token{};
  DDL_TRY(send_with_fds(socket.get(), {&token, 1}, {}));
  DDL_TRY(wait_readable(socket.get(), limit));
  DDL_TRY(receive_exactly(socket.get(), {&token, 1}, none));
  return group;
}

namespace {

/// Prefix of the error that a leader puts instead of an address if it could not open its rendezvous.
constexpr std::string_view kLeaderFailed = "failed: ";

std::string key_of(const Membership& membership) {
  return "ddl.shm." + std::to_string(membership.generation);
}

}  // namespace

Status SharedMemoryTransport::is_usable(const Membership& membership) const {
  const std::size_t local = membership.local_members().size();
  if (local > static_cast<std::size_t>(kMaxMembers)) {
    return fail(ErrorCode::kUnavailable, "shared memory connects at most " + std::to_string(kMaxMembers) +
                                             " ranks of one host, not " + std::to_string(local));
  }
  return {};
}

Status SharedMemoryTransport::publish(Bootstrap& bootstrap, const SegmentConfig& config) {
  const Membership& membership = bootstrap.membership();
  if (membership.rank != membership.local_members().front()) return {};
  // The leader always puts a value, also after an error, because the others wait for it.
  leader_ = WireUpLeader::open(membership, config);
  return bootstrap.put(key_of(membership), *leader_
                                               ? (*leader_)->address()
                                               : std::string(kLeaderFailed) + leader_->error().message());
}

Result<SharedGroup> SharedMemoryTransport::connect(Bootstrap& bootstrap, const ConnectLimit& given) {
  const Membership& membership = bootstrap.membership();
  fault_.pass(FaultPoint::kAfterFence);
  const ConnectLimit limit{given.sooner(Deadline::after_seconds(seconds_)), given.doorbell};
  Result<SharedGroup> group;
  if (!leader_) {
    group = follow(bootstrap, limit);
  } else if (!*leader_) {
    group = fail(leader_->error());
  } else {
    group = (*leader_)->gather(limit, fault_);
  }
  leader_.reset();
  if (!group) return fail(std::move(group.error().during("connecting the ranks of " + membership.host)));
  return group;
}

Result<SharedGroup> SharedMemoryTransport::follow(Bootstrap& bootstrap, const ConnectLimit& limit) {
  const Membership& membership = bootstrap.membership();
  const int leader = membership.local_members().front();
  DDL_ASSIGN(text, bootstrap.get(leader, key_of(membership), limit.deadline));
  if (text.starts_with(kLeaderFailed)) {
    return fail(ErrorCode::kSystem,
                "rank " + std::to_string(leader) + ": " + text.substr(kLeaderFailed.size()));
  }
  DDL_ASSIGN(rendezvous, Rendezvous::parse(text));
  auto group = join_wire_up(membership, rendezvous, limit, fault_);
  if (!group && group.error().system_errno() == ECONNREFUSED) {
    // No process listens under this name in this network namespace.
    return fail(std::move(group.error().during("the launcher says that rank " + std::to_string(leader) +
                                               " and rank " + std::to_string(membership.rank) +
                                               " share this host, but rank " + std::to_string(leader) +
                                               " is gone or in another container")));
  }
  return group;
}

}  // namespace ddl::runtime
