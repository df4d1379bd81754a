// The interface through which the ranks of one host reach each other's memory. The one for ranks of different hosts
// is wire/link_transport.h.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/member.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

/// The wired-up ranks of one host, from the view of one member.
struct SharedGroup {
  /// The memory that all members map, and the segment in it, initialised.
  std::shared_ptr<const MappedMemory> memory;
  Segment segment;
  /// As connect() returns it, with their ranks in the bootstrap's membership.
  Members members;
  int index = 0;  ///< of this process in members
  /// One per member, readable when its process has ended; empty if there is nothing to watch: for the own process and
  /// for ranks that are threads of it.
  std::vector<UniqueFd> pidfds;
  /// An eventfd of the whole group, readable once the group has been aborted.
  UniqueFd doorbell;
  /// The number of CPUs that the members may run on, all together.
  int cpus = 1;
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const = 0;  ///< static storage
  /// An error that gives the reason if this transport cannot connect the ranks of this host.
  virtual Status is_usable(const Membership& membership) const = 0;
  /// Puts into the bootstrap what the others need to find this rank. A fence of all ranks follows, also after an
  /// error. The first rank's configuration of the segment holds.
  virtual Status publish(Bootstrap& bootstrap, const SegmentConfig& config) = 0;
  /// Called after that fence; collective over the ranks of the host: all return when all are connected, or all fail.
  virtual Result<SharedGroup> connect(Bootstrap& bootstrap, const ConnectLimit& limit) = 0;
};

}  // namespace ddl::runtime
