// One slice of one chunk on its way between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/cluster/route.h"
#include "runtime/src/link/lane.h"
#include "runtime/src/link/slice_frame.h"

namespace ddl::runtime {

/// How two values become one, where a route merges.
struct Combine {
  ddl_dtype dtype = DDL_INT32;
  ddl_op op = DDL_SUM;
};

/// The bytes of one slice, and room to receive others beside it. Memory is kept for the next slice.
struct SliceBuffers {
  std::vector<std::byte> value;
  std::vector<std::byte> received;
  std::vector<std::byte> merged;

  /// For a value that is merged as a whole.
  void resize(std::size_t bytes) {
    for (std::vector<std::byte>* buffer : {&value, &received, &merged}) buffer->resize(bytes);
  }
  /// Makes one value of the own and the received one.
  void merge(Merge how, const Combine& combine);
  /// Makes one of every host's values, as Stage::combines_all says.
  void combine_all(const Stage& stage, int hosts, const Combine& combine);
};

/// Not movable while it runs: its buffers are being sent and written.
class HostRun {
 public:
  SliceBuffers& buffers() { return buffers_; }

  /// Begins with buffers().value. lane outlives the run. hosts: how many there are.
  void begin(Lane& lane, Route route, int hosts, const Combine& combine, std::uint64_t call,
             std::uint64_t chunk);
  /// Goes on as far as what has been sent and received allows; true when there is nothing left to do.
  bool advance();
  bool is_done() const { return stage_ == route_.size(); }

 private:
  void post();
  SliceFrame frame(int host, ByteRange Transfer::*direction) const;

  SliceBuffers buffers_;
  Lane* lane_ = nullptr;
  Route route_;
  int hosts_ = 1;
  Combine combine_;
  std::size_t stage_ = 0;
  Pending pending_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t chunk_ = 0;
};

}  // namespace ddl::runtime
