// The tensors that the program of this rank has submitted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/device/device.h"
#include "runtime/src/named/agreement.h"

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
  /// The GPU that the buffers lie on, and when they may be used; null: in CPU memory.
  Device* device = nullptr;
  DeviceEvent ready;
  /// Called once, when it is complete, by a thread that waits for some tensor, by the engine's own, or by one that
  /// leaves the process set.
  std::function<void(const Outcome&)> on_completion;

  enum class Phase : std::uint8_t {
    kNew,
    kOpen,   ///< it has been submitted
    kEnded,  ///< it has been executed, or has failed, and on_completion has not returned
    kComplete,
  };

  // Guarded by the engine; the atomic ones are also read without its lock.
  std::atomic<Phase> phase{Phase::kNew};
  std::atomic<bool> is_wanted{false};     ///< the program waits for it, or has tested it
  Deadline patience = Deadline::never();  ///< the rank asks for a round then
  std::uint32_t record_place = 0;         ///< in the RankRecord
  std::uint64_t logged = 0;               ///< the number of its event; 0: none
  Outcome outcome;

  bool is_complete() const { return phase == Phase::kComplete; }
  const std::string& name() const { return announcement.name; }
  const TensorTerms& terms() const { return announcement.terms; }
};
using SubmissionPtr = std::shared_ptr<Submission>;

/// Those of this rank that have not ended. Not thread-safe.
class OpenTensors {
 public:
  bool empty() const { return by_name_.empty(); }
  bool contains(const std::string& name) const { return by_name_.contains(name); }
  /// One of them; there is one.
  SubmissionPtr any() const { return by_name_.begin()->second; }
  /// Those of a batch, in its order; none if this rank had joined.
  std::vector<SubmissionPtr> of(const Batch& batch, int own_rank) const;

  /// All or none, also if memory ends: a program whose call has failed may free its buffers.
  void add(const std::vector<SubmissionPtr>& submissions, const Prediction& prediction);
  /// The program waits for a tensor, or tests it. Whether that is new.
  bool want(Submission& submission);
  void remove(std::span<const SubmissionPtr> submissions);

  bool has_unannounced() const { return !unannounced_.empty(); }
  /// What a round announces.
  std::vector<Announcement> announce();
  /// The other ranks have begun these, so they know of them.
  void set_announced(std::span<const SubmissionPtr> submissions);
  void set_all_announced() { unannounced_.clear(); }
  /// When the oldest that is not announced has waited long for the rest of its batch.
  Deadline patience() const {
    return unannounced_.empty() ? Deadline::never() : unannounced_.front()->patience;
  }

  // The facts of these names (named/next_call.h).
  bool has_predicted(const Agreement& agreement);
  bool overtakes(const Agreement& agreement);
  bool is_impatient(const Agreement& agreement);

 private:
  void follow(const Prediction& prediction);

  std::unordered_map<std::string, SubmissionPtr> by_name_;
  std::vector<SubmissionPtr> unannounced_;  ///< in order
  std::size_t wanted_ = 0;
  std::uint64_t version_ = 0;   ///< of the prediction
  std::size_t unexpected_ = 0;  ///< of unannounced_, as of version_
  std::size_t found_ = 0;       ///< of the tensors of the predicted batch, from its first one
};

}  // namespace ddl::runtime
