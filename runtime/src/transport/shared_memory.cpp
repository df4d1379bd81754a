#include "runtime/src/transport/shared_memory.h"

#include "base/text.h"
#include "runtime/src/transport/wire_up_member.h"

namespace ddl::runtime {
namespace {

/// Stands before the sentence of a leader that could not open its meeting place, instead of an address.
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

Status SharedMemoryTransport::offer(Bootstrap& bootstrap, const SegmentWish& wish) {
  const Membership& membership = bootstrap.membership();
  if (membership.rank != membership.local_members().front()) return {};
  // The leader always puts something: the others have nobody else to ask.
  leader_ = WireUpLeader::open(membership, wish);
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
  auto text = bootstrap.get(leader, key_of(membership), limit.deadline);
  if (!text) return fail(std::move(text.error()));
  if (text->starts_with(kLeaderFailed)) {
    return fail(ErrorCode::kSystem,
                "rank " + std::to_string(leader) + ": " + text->substr(kLeaderFailed.size()));
  }
  auto rendezvous = Rendezvous::parse(*text);
  if (!rendezvous) return fail(std::move(rendezvous.error()));
  auto group = join_wire_up(membership, *rendezvous, limit, fault_);
  if (!group && group.error().system_errno() == ECONNREFUSED) {
    // Nobody listens under this name in this network namespace.
    return fail(std::move(group.error().during("the launcher says that rank " + std::to_string(leader) +
                                               " and rank " + std::to_string(membership.rank) +
                                               " share this host, but rank " + std::to_string(leader) +
                                               " is gone or in another container")));
  }
  return group;
}

}  // namespace ddl::runtime
