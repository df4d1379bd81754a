// The order of named tensors that all ranks expect of the next step, learned from the steps before.
//
// A training step submits the same tensors as the one before. Once all ranks have executed a step, they know its
// order, and need not agree again: each enters the next batch when it has all tensors of it. The ranks compare what
// they enter, as in every call, and a rank that has something else in mind enters a round of agreement instead
// (named/engine.h). So this only has to be right mostly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/src/named/tensor.h"

namespace ddl::runtime {

/// What is executed by one call: one tensor, several that one allreduce combines, or a part of a large one.
struct Batch {
  std::vector<AgreedTensorPtr> tensors;
  /// Of a part: its first element, and the number of its elements. 0: all of the tensors.
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  /// Whether each rank has data; empty: all have. A rank that has joined has none.
  std::vector<std::uint8_t> has_data;
  /// Instead of being executed, the tensors fail with DDL_ERROR_MISMATCH and this sentence.
  std::optional<std::string> failure;

  /// The highest of its tensors.
  std::int32_t priority() const;
  /// Its tensors are complete when it has been executed.
  bool is_last() const { return count == 0 || first + count == tensors.front()->terms.call.count; }
};

/// Batches of at most this number of bytes gain little by being smaller.
inline constexpr std::uint64_t kSmallestBatch = std::uint64_t{1} << 20;

/// The batch, or its first part if it is an allreduce of one tensor of more than this number of bytes. Between the
/// parts, other tensors can be executed; the bits of the result are the same.
Batch first_part_of(Batch batch, std::uint64_t bytes);
/// The parts that follow this one.
std::vector<Batch> parts_after(const Batch& part);

/// Cuts a sequence of tensors into batches of at most this number of bytes; a larger tensor is a batch of its own.
std::vector<Batch> batches_of(const std::vector<AgreedTensorPtr>& tensors, std::uint64_t bytes);

/// The same on all ranks, because it changes only by tensors that all have executed in the same order. Not
/// thread-safe.
class Prediction {
 public:
  struct Limits {
    std::uint64_t fusion_bytes = std::uint64_t{64} << 20;
    /// That are remembered, a few hundred bytes each. A step of more tensors agrees on the rest of them, which takes
    /// ten times as long (2,000 small tensors, two ranks: 147 ms with 1,024 names, and 9 ms with all).
    std::size_t names = 16384;
  };
  explicit Prediction(Limits limits) : limits_(limits) {}
  /// Holds for steps that are learned later.
  void set_fusion_bytes(std::uint64_t bytes) { limits_.fusion_bytes = bytes; }

  /// The next batch of this step: the tensors of it that have not been executed. Null if nothing is expected.
  const Batch* next() const { return next_ ? &*next_ : nullptr; }
  /// Changes whenever next() changes.
  std::uint64_t version() const { return version_; }

  /// In this step, or in the next one, if it has been executed in this one.
  bool expects(const std::string& name, const TensorTerms& terms) const {
    return find(name, terms) != nullptr;
  }
  /// The batch that this tensor is expected in, if that comes later than next() and has a higher priority. Null
  /// otherwise.
  const Batch* overtaking(const std::string& name, const TensorTerms& terms) const;

  /// All ranks have executed these tensors.
  void executed(const std::vector<AgreedTensorPtr>& tensors);
  /// The program has ended its step.
  void end_step();
  /// The steps that have ended.
  std::uint64_t steps() const { return steps_; }
  /// Nothing has been executed since the last step ended.
  bool is_between_steps() const { return this_step_.empty(); }

 private:
  struct Expected {
    AgreedTensorPtr tensor;
    std::size_t batch = 0;  ///< of batches_
    bool is_done = false;
  };
  /// Null if no tensor of this name is expected, or another one.
  const Expected* find(const std::string& name, const TensorTerms& terms) const;
  using Sequence = std::vector<AgreedTensorPtr>;
  static bool are_alike(const Sequence& a, const Sequence& b);

  void expect(const Sequence& sequence);
  void begin_step();
  void find_next();

  Limits limits_;
  std::vector<Batch> batches_;
  bool has_priorities_ = false;                         ///< some batches have a higher one than others
  std::unordered_map<std::string, Expected> expected_;  ///< by name
  Sequence sequence_;                                   ///< of which batches_ were made
  bool is_whole_ = true;                                ///< the last of expected_ ends the step
  std::size_t done_ = 0;                                ///< of expected_, in this step
  std::size_t first_open_ = 0;                          ///< no batch before it has tensors left
  std::optional<Batch> next_;
  std::uint64_t version_ = 0;
  std::uint64_t steps_ = 0;

  Sequence this_step_, last_step_;  ///< as they were executed
  std::unordered_set<std::string> names_of_step_;
};

}  // namespace ddl::runtime
