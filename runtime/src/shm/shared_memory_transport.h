// The transport of the ranks of one host: the first rank makes the memory and passes it to the others by descriptor.
// The wire-up of the other ranks is here; the first rank's is in wire_up.h.
#pragma once

#include <optional>

#include "runtime/src/common/fault.h"
#include "runtime/src/shm/transport.h"
#include "runtime/src/shm/wire_up.h"

namespace ddl::runtime {

// The side of every rank but the leader in the wire-up of one host.

/// Connects to the leader and receives the group. Returns when all members have it, or the limit has been reached.
Result<SharedGroup> join_wire_up(const Membership& membership, const Rendezvous& rendezvous,
                                 const ConnectLimit& limit, FaultInjector& fault);

/// The leader is the first local rank. It puts the address of a socket into the bootstrap; after the fence the others
/// connect, prove the job's nonce and the leader's user id, and receive a sealed memfd and a pidfd of every member.
/// Only a descriptor that was really passed proves that two ranks are on one host: in containers host names and boot
/// ids may be wrong.
class SharedMemoryTransport final : public Transport {
 public:
  /// fault outlives the transport. seconds: the time limit once all ranks have begun; connecting takes milliseconds
  /// unless the host swaps or a rank dies meanwhile.
  explicit SharedMemoryTransport(FaultInjector& fault, double seconds = 60.0)
      : fault_(fault), seconds_(seconds) {}

  const char* name() const override { return "shared memory"; }
  Status is_usable(const Membership& membership) const override;
  Status publish(Bootstrap& bootstrap, const SegmentConfig& config) override;
  Result<SharedGroup> connect(Bootstrap& bootstrap, const ConnectLimit& limit) override;

 private:
  Result<SharedGroup> follow(Bootstrap& bootstrap, const ConnectLimit& limit);

  FaultInjector& fault_;
  double seconds_;
  std::optional<Result<WireUpLeader>> leader_;  ///< on the first local rank, between publish() and connect()
};

}  // namespace ddl::runtime
