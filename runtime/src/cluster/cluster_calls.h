// What each collective does with a chunk, when a job has several hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/channel/channel.h"
#include "runtime/src/cluster/chunking.h"
#include "runtime/src/cluster/host_run.h"
#include "runtime/src/cluster/slot_areas.h"
#include "runtime/src/collective/element.h"
#include "runtime/src/collective/host_steps.h"

namespace ddl::runtime {

/// Where a rank stands, for all calls.
struct ClusterPlace {
  const HostLayout& layout;
  const SlotAreas& areas;
  Channel& channel;
};

class ClusterCall {
 public:
  explicit ClusterCall(ClusterPlace place) : place_(place) {}
  virtual ~ClusterCall() = default;
  ClusterCall(const ClusterCall&) = delete;
  ClusterCall& operator=(const ClusterCall&) = delete;

  virtual std::uint64_t chunks() const = 0;
  /// The first chunk goes with the comparison of the calls, by the steps of an allreduce.
  virtual bool first_rides() const { return false; }
  virtual const HostSteps& steps() const = 0;
  virtual Combine combine() const { return {}; }

  /// Every rank, before the exchange: puts its part of the chunk into its input area.
  virtual void fill(std::uint64_t chunk, std::byte* input) = 0;
  /// A rank with a lane, after it: makes this host's value of its slice. Returns the bytes of one unit of the steps.
  virtual std::size_t gather(std::uint64_t chunk, SliceBuffers& buffers) = 0;
  /// A rank with a lane: puts the slice's result into its result area.
  virtual void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) = 0;
  /// Every rank, after the next exchange: takes the chunk's result from the result areas of the lanes.
  virtual void take(std::uint64_t chunk) = 0;

 protected:
  const HostLayout& layout() const { return place_.layout; }
  int own_lane() const { return place_.channel.index(); }
  int local_size() const { return place_.channel.size(); }
  /// What local rank i had put in at the last exchange.
  const std::byte* input_of(int local_rank) const {
    return place_.areas.input(place_.channel.slot(local_rank));
  }
  const std::byte* result_of(int lane) const { return place_.areas.result(place_.channel.slot(lane)); }
  std::size_t area_bytes() const { return place_.areas.area_bytes; }

 private:
  ClusterPlace place_;
};

class ClusterAllreduce final : public ClusterCall {
 public:
  ClusterAllreduce(ClusterPlace place, const HostSteps& steps, const std::byte* send, std::byte* recv,
                   std::uint64_t count, ddl_dtype dtype, ddl_op op);
  std::uint64_t chunks() const override { return chunking_.chunks(); }
  bool first_rides() const override { return true; }
  const HostSteps& steps() const override { return steps_; }
  Combine combine() const override {
    return {partial_dtype(dtype_, op_), op_ == DDL_AVERAGE ? DDL_SUM : op_};
  }
  void fill(std::uint64_t chunk, std::byte* input) override;
  std::size_t gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  const HostSteps& steps_;
  const std::byte* send_;
  std::byte* recv_;
  ddl_dtype dtype_;
  ddl_op op_;
  std::size_t element_;
  std::size_t partial_;  ///< bytes of an element on its way between hosts
  Chunking chunking_;
  int ranks_;
};

class ClusterBroadcast final : public ClusterCall {
 public:
  ClusterBroadcast(ClusterPlace place, int rank, std::byte* buffer, std::uint64_t count, ddl_dtype dtype,
                   int root);
  std::uint64_t chunks() const override { return chunking_.chunks(); }
  const HostSteps& steps() const override { return steps_; }
  void fill(std::uint64_t chunk, std::byte* input) override;
  std::size_t gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  HostSteps steps_;
  std::byte* buffer_;
  std::size_t element_;
  Chunking chunking_;
  bool is_root_;
  int local_root_ = -1;  ///< root's local rank; -1 if it is on another host
};

class ClusterAllgather final : public ClusterCall {
 public:
  ClusterAllgather(ClusterPlace place, const std::byte* send, std::byte* recv, std::uint64_t count,
                   ddl_dtype dtype);
  std::uint64_t chunks() const override { return chunking_.chunks(); }
  const HostSteps& steps() const override { return steps_; }
  void fill(std::uint64_t chunk, std::byte* input) override;
  std::size_t gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  HostSteps steps_;
  const std::byte* send_;
  std::byte* recv_;
  std::size_t element_;
  Chunking chunking_;  ///< of one rank's part
  int ranks_ = 0;
  int first_own_unit_ = 0;  ///< a unit is one rank's slice; units stand host by host
  std::vector<int> rank_of_unit_;
};

/// Nothing but the comparison of the calls.
class ClusterBarrier final : public ClusterCall {
 public:
  using ClusterCall::ClusterCall;
  std::uint64_t chunks() const override { return 0; }
  const HostSteps& steps() const override { return none_; }
  void fill(std::uint64_t, std::byte*) override {}
  std::size_t gather(std::uint64_t, SliceBuffers&) override { return 0; }
  void publish(std::uint64_t, SliceBuffers&, std::byte*) override {}
  void take(std::uint64_t) override {}

 private:
  HostSteps none_;
};

}  // namespace ddl::runtime
