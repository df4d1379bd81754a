// The memory of a pair of ranks: a segment within that of their process set, or, on two hosts, one for each alone.
#pragma once

#include "runtime/src/transport/transport.h"

namespace ddl::runtime {

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
