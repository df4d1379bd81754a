// One slice of one chunk on its way between hosts.
//
// All that a slice will receive is posted when it sets out, each part to a place of its own. Two hosts may meet in several
// stages, and of two chunks on their way now the one and now the other is ahead: what has come early must not stand in the
// way of what comes behind it on the same connection, which may be what the early one's stage is waiting for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/cluster/route.h"
#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/link/lane.h"
#include "runtime/src/link/slice_frame.h"

namespace ddl::runtime {

/// The bytes of one slice, and room to receive others beside it: in memory that is kept for the next slice, or in the
/// caller's.
class SliceBuffers {
 public:
  std::span<std::byte> value;
  std::span<std::byte> received;

  /// The value is so long and stands in memory of its own, with what stood there before.
  void keep_value(std::size_t bytes) { value = first_of(own_value_, bytes); }
  /// The same of what is received.
  void keep_received(std::size_t bytes) { received = first_of(own_received_, bytes); }

  /// Makes one value of the own and the received one.
  void merge(Merge how, const Reduction& combine);
  /// The same of a range of the value, not replaced, and as much of what was received from aside on.
  void merge_range(Merge how, ByteRange range, std::size_t aside, const Reduction& combine);
  /// Makes one of every host's values, as Stage::combines_all says.
  void combine_all(const Stage& stage, int hosts, const Reduction& combine);

 private:
  static std::span<std::byte> first_of(std::vector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
    return std::span(memory).first(bytes);
  }

  std::vector<std::byte> own_value_;
  std::vector<std::byte> own_received_;
};

/// Not movable while it runs: its buffers are being sent and written.
class HostRun {
 public:
  SliceBuffers& buffers() { return buffers_; }

  /// Begins with buffers().value. lane outlives the run. hosts: how many there are.
  void begin(Lane& lane, Route route, int hosts, const Reduction& combine, std::uint64_t call,
             std::uint64_t chunk);
  /// Goes on as far as what has been sent and received allows; true when there is nothing left to do.
  bool advance();
  bool is_done() const { return stage_ == route_.size(); }
  std::size_t stage() const { return stage_; }

 private:
  /// Of all stages.
  void post_receives();
  /// Of the one that begins.
  void post_sends();
  SliceFrame frame(std::size_t of_stage, int host, ByteRange Transfer::*direction) const;

  SliceBuffers buffers_;
  Lane* lane_ = nullptr;
  Route route_;
  int hosts_ = 1;
  Reduction combine_;
  std::size_t stage_ = 0;
  std::size_t merged_ = 0;           ///< how many of asides_
  std::vector<Pending> pending_;     ///< of each stage
  std::vector<std::size_t> asides_;  ///< where what is merged is received, in the order of the route
  std::uint64_t call_ = 0;
  std::uint64_t chunk_ = 0;
};

}  // namespace ddl::runtime
