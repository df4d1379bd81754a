// A tensor that the program has handed over, and its completion.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/deadline.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/device/device.h"
#include "runtime/src/named/tensor.h"

namespace ddl::runtime {

/// Owned by the handle that the program has, and by the engine until it is complete. The buffers are the program's.
struct Submission {
  Announcement announcement;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  /// allgatherv: the elements of this rank.
  std::uint64_t own_count = 0;
  /// allgatherv, alltoallv: where to store the result, which is allocated, and the number of elements that came from
  /// each rank; the numbers may be null.
  void** result = nullptr;
  std::uint64_t* recv_counts = nullptr;
  /// The GPU that the buffers lie on, and when they may be used; null: they lie on the host.
  Device* device = nullptr;
  DeviceEvent ready;
  /// Called once, when it is complete, by a thread that waits for some tensor, by the engine's own, or by one that
  /// leaves the process set.
  std::function<void(const Outcome&)> on_completion;

  // Guarded by the engine.
  bool is_open = false;    ///< it has been handed over, and not carried out
  bool is_wanted = false;  ///< the program waits for it
  /// It has been carried out, or has failed, and on_completion has returned. Also read without the engine's lock.
  std::atomic<bool> is_complete{false};
  std::atomic<bool> is_tested{false};     ///< the program has tested it
  Deadline patience = Deadline::never();  ///< the rank asks to agree then
  std::uint32_t shown = 0;                ///< its place in the RankRecord
  std::uint64_t logged = 0;               ///< the number of its event; 0: none
  Outcome outcome;

  const std::string& name() const { return announcement.name; }
  const TensorTerms& terms() const { return announcement.terms; }
};
using SubmissionPtr = std::shared_ptr<Submission>;

}  // namespace ddl::runtime
