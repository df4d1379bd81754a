// The memory that the ranks of a process set share on a host: how large its segment is, and the part of it in which two of
// the ranks meet as a pair.
#pragma once

#include <cstdint>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/transport.h"

namespace ddl::runtime {

// What memory the ranks of a process set share on a host.

/// The segment of a set of which this rank is a member: staging slots as the settings and the layout ask for, slots for
/// pairs as the address space allows, and a part of the shared heap for each rank if it has_heap. Alike on all ranks of
/// the host.
SegmentWish wish_of(const Settings& settings, const Membership& membership, bool has_heap,
                    std::uint32_t first_sequence);

// The memory of a pair of ranks: a segment within that of their process set, or, on two hosts, one for each alone.

class PairMemory final : public Transport {
 public:
  /// set: the ranks of this host, which outlive this. other: the index of the other rank among them, or -1 if it is on
  /// another host.
  PairMemory(const SharedGroup& set, int other) : set_(set), other_(other) {}

  const char* name() const override { return "pair memory"; }
  Status is_usable(const Membership& membership) const override;
  Status offer(Bootstrap& bootstrap, const SegmentWish& wish) override;
  Result<SharedGroup> connect(Bootstrap& bootstrap, const ConnectLimit& limit) override;

 private:
  Status make_own(SharedGroup& group) const;

  const SharedGroup& set_;
  int other_;
  SegmentWish wish_;
};

/// The index of one of two members in the segment of their pair.
constexpr int index_in_pair(int member, int other) { return member < other ? 0 : 1; }

}  // namespace ddl::runtime
