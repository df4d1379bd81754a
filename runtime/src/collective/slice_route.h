// The route of one chunk's slice between hosts: the stages that it consists of, and the run along them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/collective/reduce_kernel.h"
#include "runtime/src/wire/lane.h"
#include "runtime/src/wire/slice_queue.h"

namespace ddl::runtime {

// The way of one chunk's slice between hosts: what this rank sends to its partners and receives from them, in bytes.
//
// A route is a row of stages. All transfers of a stage are under way at once; a stage begins when the one before has ended
// and what it brought has been merged. What is sent comes from the slice's *value*; what is received goes over the value,
// or beside it where it has to be merged or laid out anew.

struct ByteRange {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const ByteRange&) const = default;
};

struct Transfer {
  int host = 0;
  ByteRange send;  ///< of the value
  /// Of the value if it replaces, or is merged with what is there; otherwise of what was received.
  ByteRange recv;
  Merge merge = Merge::kReplace;
  bool operator==(const Transfer&) const = default;
};

struct Stage {
  std::vector<Transfer> transfers;
  /// After the transfers: one value of every host's, along the canonical tree. Host h's is the unit_bytes from h times
  /// unit_bytes on of what was received; the own one is, and the result becomes, the value's range own.
  bool combines_all = false;
  std::size_t unit_bytes = 0;
  int own_host = 0;
  ByteRange own;
};

using Route = std::vector<Stage>;

/// Steps one after the other, over units of unit_bytes.
Route route_of(const HostSteps& steps, std::size_t unit_bytes);

/// Rounds of steps that are taken at once, over one unit a host, of units[h] bytes.
Route route_of(const std::vector<HostSteps>& rounds, const std::vector<std::size_t>& units);

/// The value is one unit a host, of units[h] bytes; host h's comes to be in everybody's value.
Stage allgather_stage(const std::vector<std::size_t>& units, int own);

/// The value is one unit a host, of units[h] bytes: host h gets all hosts' h-th and combines them.
Stage reduce_scatter_stage(const std::vector<std::size_t>& units, int own);

// One slice of one chunk on its way between hosts.
//
// All that a slice will receive is posted when it sets out, each part to a place of its own. Two hosts may meet in several
// stages, and of two chunks on their way now the one and now the other is ahead: what has come early must not stand in the
// way of what comes behind it on the same connection, which may be what the early one's stage is waiting for.

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
