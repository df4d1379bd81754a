// The side of every rank but the leader in the wire-up of one host.
#pragma once

#include "runtime/src/fault.h"
#include "runtime/src/transport/rendezvous.h"
#include "runtime/src/transport/transport.h"

namespace ddl::runtime {

/// Connects to the leader and receives the group. Returns when all members have it, or the limit has been reached.
Result<SharedGroup> join_wire_up(const Membership& membership, const Rendezvous& rendezvous,
                                 const ConnectLimit& limit, FaultInjector& fault);

}  // namespace ddl::runtime
