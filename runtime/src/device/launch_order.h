// The order in which a rank puts collectives of several communicators on its GPU. A collective of a GPU's library
// occupies the GPU until the other ranks' parts have come. If two ranks put two of them on their GPUs in different
// orders, both may wait for ever; so all ranks use one order.
//
// The order is that of numbers on which the ranks of each call agree: the largest of those that they propose, once all of
// them have arrived in the call. A rank proposes numbers that grow, and begins a call when no other one of its calls can
// get a smaller number.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// Of a rank. Thread-safe.
class LaunchOrder {
 public:
  LaunchOrder() = default;
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  /// A communicator's stream, which lives as long as somebody refers to it.
  struct Stream {
    Device* device = nullptr;  ///< null: there is no communicator yet
    std::shared_ptr<const DeviceStream> stream;
  };

  /// The place of a process set, or of its named tensors, among those of this rank.
  class Place {
   public:
    explicit Place(LaunchOrder& order);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Once the communicator is there.
    void set(Device& device, std::shared_ptr<const DeviceStream> stream);
    /// Held while a call is put on the stream without an order, because there are no other places; does not own the lock
    /// if there are.
    std::unique_lock<std::mutex> alone() const;
    /// The streams of the others.
    std::vector<Stream> others() const;

   private:
    LaunchOrder& order_;
  };

  /// A call from the time when all ranks have arrived in it until it has been put on its stream.
  class Turn {
   public:
    /// job_rank: of this rank, below 2^20, so that two ranks never propose the same number.
    Turn(LaunchOrder& order, int job_rank);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    std::uint64_t proposal() const { return proposal_; }
    /// Waits until the call with the agreed number is this rank's next one. The others that it waits for are about to
    /// agree, or to be put on their streams.
    void wait(std::uint64_t agreed);

   private:
    LaunchOrder& order_;
    std::uint64_t proposal_;
  };

 private:
  std::mutex alone_;  ///< held while a place is made, too
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t clock_ = 0;
  /// The number that each call has proposed or, once that is known, has been given.
  std::map<const Turn*, std::uint64_t> turns_;
  std::map<const Place*, Stream> places_;
};

}  // namespace ddl::runtime
