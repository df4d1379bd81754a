// One slice of one chunk on its way through the steps between hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/collective/host_steps.h"
#include "runtime/src/link/lane.h"

namespace ddl::runtime {

/// How two values become one, where a step merges.
struct Combine {
  ddl_dtype dtype = DDL_INT32;
  ddl_op op = DDL_SUM;
};

/// The bytes of one slice, and room to receive others beside it. Memory is kept for the next slice.
struct SliceBuffers {
  std::vector<std::byte> value;
  std::vector<std::byte> received;
  std::vector<std::byte> merged;

  void resize(std::size_t bytes) {
    for (std::vector<std::byte>* buffer : {&value, &received, &merged}) buffer->resize(bytes);
  }
  /// Makes one value of the own and the received one.
  void merge(Merge how, const Combine& combine);
};

/// A frame stands before each slice on the wire, so that ranks that have come apart notice it.
struct SliceFrame {
  static constexpr std::uint32_t kMagic = 0x44444C53;  // "DDLS"
  std::uint32_t magic = kMagic;
  std::uint32_t reserved = 0;
  std::uint64_t call = 0;   ///< its number
  std::uint64_t chunk = 0;  ///< its index
  std::uint64_t bytes = 0;
  bool operator==(const SliceFrame&) const = default;
};

/// Not movable while it runs: frames and counters are being written.
class HostRun {
 public:
  SliceBuffers& buffers() { return buffers_; }

  /// Begins with buffers().value, cut into units of unit_bytes. lane and steps outlive the run.
  void begin(Lane& lane, const HostSteps& steps, std::size_t unit_bytes, const Combine& combine,
             std::uint64_t call, std::uint64_t chunk);
  /// Goes on as far as what has been sent and received allows; true when there is nothing left to do.
  bool advance();
  bool is_done() const { return step_ == steps_->size(); }
  /// The other side sent something that does not belong here; advance() stands still then.
  bool is_out_of_step() const { return is_out_of_step_; }
  int step_host() const { return (*steps_)[step_].host; }

 private:
  void post();

  SliceBuffers buffers_;
  Lane* lane_ = nullptr;
  const HostSteps* steps_ = nullptr;
  std::size_t unit_bytes_ = 0;
  Combine combine_;
  std::size_t step_ = 0;
  Pending pending_ = 0;
  SliceFrame sent_frame_;
  SliceFrame wanted_frame_;
  SliceFrame received_frame_;
  bool is_out_of_step_ = false;
};

}  // namespace ddl::runtime
