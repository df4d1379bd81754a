#include "runtime/src/transport/shared_memory.h"

#include "runtime/src/transport/wire_up_leader.h"
#include "runtime/src/transport/wire_up_member.h"

namespace ddl::runtime {
namespace {

/// Stands before the sentence of a leader that could not open its meeting place, instead of an address.
constexpr std::string_view kLeaderFailed = "failed: ";

/// The leader always puts something: otherwise the others would wait for it in the fence.
Result<SharedGroup> lead(Bootstrap& bootstrap, const std::string& key, const SegmentWish& wish,
                         double seconds, FaultInjector& fault) {
  auto leader = WireUpLeader::open(bootstrap.membership(), wish);
  DDL_TRY(
      bootstrap.put(key, leader ? leader->address() : std::string(kLeaderFailed) + leader.error().message()));
  DDL_TRY(bootstrap.fence(Deadline::never()));
  fault.pass("init", "after_fence");
  if (!leader) return fail(std::move(leader.error()));
  return leader->gather(Deadline::after_seconds(seconds));
}

Result<SharedGroup> follow(Bootstrap& bootstrap, const std::string& key, double seconds,
                           FaultInjector& fault) {
  const int leader = bootstrap.membership().local_members.front();
  DDL_TRY(bootstrap.fence(Deadline::never()));
  fault.pass("init", "after_fence");
  const Deadline deadline = Deadline::after_seconds(seconds);
  auto text = bootstrap.get(leader, key, deadline);
  if (!text) return fail(std::move(text.error()));
  if (text->starts_with(kLeaderFailed)) {
    return fail(ErrorCode::kSystem,
                "rank " + std::to_string(leader) + ": " + text->substr(kLeaderFailed.size()));
  }
  auto rendezvous = Rendezvous::parse(*text);
  if (!rendezvous) return fail(std::move(rendezvous.error()));
  return join_wire_up(bootstrap.membership(), *rendezvous, deadline, fault);
}

}  // namespace

Status SharedMemoryTransport::is_usable(const Membership& membership) const {
  const std::size_t local = membership.local_members.size();
  if (local != static_cast<std::size_t>(membership.size)) {
    return fail(ErrorCode::kUnavailable,
                "this version of libddl connects the ranks of one host only; the job has " +
                    std::to_string(membership.size) + " ranks, " + std::to_string(local) + " of them on " +
                    membership.host);
  }
  if (local > static_cast<std::size_t>(kMaxMembers)) {
    return fail(ErrorCode::kUnavailable, "shared memory connects at most " + std::to_string(kMaxMembers) +
                                             " ranks of one host, not " + std::to_string(local));
  }
  return {};
}

Result<SharedGroup> SharedMemoryTransport::connect(Bootstrap& bootstrap, const SegmentWish& wish) {
  const Membership& membership = bootstrap.membership();
  const std::string key = "ddl.shm." + std::to_string(membership.generation);
  auto group = membership.rank == membership.local_members.front()
                   ? lead(bootstrap, key, wish, seconds_, fault_)
                   : follow(bootstrap, key, seconds_, fault_);
  if (!group) return fail(std::move(group.error().during("connecting the ranks of " + membership.host)));
  return group;
}

}  // namespace ddl::runtime
