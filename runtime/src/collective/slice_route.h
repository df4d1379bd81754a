// The route of one chunk's slice between hosts: its stages, and their execution.
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

// A route is what this rank sends to its partners and receives from them, in bytes: a sequence of stages. All
// transfers of a stage are under way at once; a stage begins when the one before has ended and its received data have
// been merged. Data are sent from the slice's *value*; received data overwrite the value, or are stored beside it if
// they have to be merged or rearranged.

struct ByteRange {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const ByteRange&) const = default;
};

struct Transfer {
  int host = 0;
  ByteRange send;  ///< of the value
  /// A range of the value if the data replace it or are merged with it; otherwise of the memory for received data.
  ByteRange recv;
  Merge merge = Merge::kReplace;
  bool operator==(const Transfer&) const = default;
};

struct Stage {
  std::vector<Transfer> transfers;
  /// After the transfers: combines the values of all hosts along the canonical tree. Host h's value is in the memory
  /// for received data, unit_bytes bytes at offset h * unit_bytes; the own one is the value's range own, and so is
  /// the result.
  bool combines_all = false;
  std::size_t unit_bytes = 0;
  int own_host = 0;
  ByteRange own;
};

using Route = std::vector<Stage>;

/// One stage per step, over units of unit_bytes.
Route route_of(const HostSteps& steps, std::size_t unit_bytes);

/// One stage per round, whose steps are taken at once, over one unit per host, of units[h] bytes.
Route route_of(const std::vector<HostSteps>& rounds, const std::vector<std::size_t>& units);

/// The value has one unit per host, of units[h] bytes; every host gets host h's unit h.
Stage allgather_stage(const std::vector<std::size_t>& units, int own);

/// The value has one unit per host, of units[h] bytes; host h gets all hosts' unit h and combines them.
Stage reduce_scatter_stage(const std::vector<std::size_t>& units, int own);

// The execution of one slice's route.
//
// All receives of a slice are posted at the beginning, each to memory of its own. Two hosts may be partners in
// several stages, and of two chunks under way either may be ahead: data that arrive early must not block the data
// behind them on the same connection, for which an earlier stage may be waiting.

/// The bytes of one slice, and space for received data beside it: in memory that is kept for the next slice, or in
/// the caller's.
class SliceBuffers {
 public:
  std::span<std::byte> value;
  std::span<std::byte> received;

  /// Puts the value into own memory, with this length; earlier contents are kept.
  void keep_value(std::size_t bytes) { value = first_of(own_value_, bytes); }
  /// The same for received data.
  void keep_received(std::size_t bytes) { received = first_of(own_received_, bytes); }

  /// Merges the received value into the own one, or replaces it.
  void merge(Merge how, const Reduction& combine);
  /// Merges a range of the value with the received bytes at offset aside.
  void merge_range(Merge how, ByteRange range, std::size_t aside, const Reduction& combine);
  /// Combines the values of all hosts, as Stage::combines_all describes.
  void combine_all(const Stage& stage, int hosts, const Reduction& combine);

 private:
  static std::span<std::byte> first_of(std::vector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
    return std::span(memory).first(bytes);
  }

  std::vector<std::byte> own_value_;
  std::vector<std::byte> own_received_;
};

/// Must not be moved while it runs: its buffers are being sent and written.
class HostRun {
 public:
  SliceBuffers& buffers() { return buffers_; }

  /// Begins with buffers().value. lane outlives the run. hosts: their number.
  void begin(Lane& lane, Route route, int hosts, const Reduction& combine, std::uint64_t call,
             std::uint64_t chunk);
  /// Progresses as far as the completed transfers allow; true when the route has ended.
  bool advance();
  bool is_done() const { return stage_ == route_.size(); }
  std::size_t stage() const { return stage_; }

 private:
  /// Posts the receives of all stages.
  void post_receives();
  /// Posts the sends of the stage that begins.
  void post_sends();
  SliceFrame frame(std::size_t of_stage, int host, ByteRange Transfer::*direction) const;

  SliceBuffers buffers_;
  Lane* lane_ = nullptr;
  Route route_;
  int hosts_ = 1;
  Reduction combine_;
  std::size_t stage_ = 0;
  std::size_t merged_ = 0;        ///< the number of asides_ that have been merged
  std::vector<Pending> pending_;  ///< of each stage
  std::vector<std::size_t>
      asides_;  ///< offsets of the received data that are merged, in the order of the route
  std::uint64_t call_ = 0;
  std::uint64_t chunk_ = 0;
};

}  // namespace ddl::runtime
