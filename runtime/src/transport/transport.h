// The seam through which the ranks of a group reach each other's memory.
#pragma once

#include <memory>
#include <vector>

#include "base/mapped_memory.h"
#include "base/unique_fd.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/channel/segment_shape.h"
#include "runtime/src/transport/member.h"

namespace ddl::runtime {

/// A wired-up group, from the view of one member.
struct SharedGroup {
  /// A segment that all members map, laid out and initialised.
  std::shared_ptr<const MappedMemory> memory;
  Members members;
  int index = 0;  ///< this process's place in members
  /// One per member, readable when its process has ended; empty where there is nothing to watch: for the own process
  /// and for ranks that are threads of it.
  std::vector<UniqueFd> pidfds;
  /// CPUs that the members may run on, all together.
  int cpus = 1;
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const = 0;  ///< static storage
  /// An error that gives the reason if this transport cannot connect these ranks.
  virtual Status is_usable(const Membership& membership) const = 0;
  /// Collective over all ranks of the job: they meet through the bootstrap and return when all are connected, or all
  /// fail. Waits without limit for ranks that have not begun yet. The first rank's wish for the segment holds.
  virtual Result<SharedGroup> connect(Bootstrap& bootstrap, const SegmentWish& wish) = 0;
};

}  // namespace ddl::runtime
