#include "runtime/src/named/prediction.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ddl::runtime {
namespace {

/// A predicted step has at least this number of batches, if they are not smaller than kSmallestBatch: communication
/// begins while the program still computes.
constexpr std::uint64_t kBatchesOfStep = 16;
/// A step that has more tensors than this times those that are remembered ends there: a program whose names never come
/// again has steps without end.
constexpr std::size_t kLongestStep = 2;

std::uint64_t bytes_of_predicted_batch(const std::vector<AgreedTensorPtr>& tensors, std::uint64_t limit) {
  std::uint64_t total = 0;
  for (const AgreedTensorPtr& tensor : tensors) total += tensor->terms.bytes();
  return std::min(limit, std::max(total / kBatchesOfStep, kSmallestBatch));
}

}  // namespace

std::int32_t Batch::priority() const {
  std::int32_t highest = tensors.front()->terms.priority;
  for (const AgreedTensorPtr& tensor : tensors) highest = std::max(highest, tensor->terms.priority);
  return highest;
}

std::vector<Batch> batches_of(const std::vector<AgreedTensorPtr>& tensors, std::uint64_t bytes) {
  std::vector<Batch> batches;
  std::uint64_t in_last = 0;
  for (const AgreedTensorPtr& tensor : tensors) {
    const TensorTerms& terms = tensor->terms;
    const bool joins_last = !batches.empty() && !tensor->follows_completion &&
                            terms.fuses_with(batches.back().tensors.front()->terms) &&
                            in_last + terms.bytes() <= bytes;
    if (!joins_last) {
      batches.emplace_back();
      in_last = 0;
    }
    batches.back().tensors.push_back(tensor);
    in_last += terms.bytes();
  }
  return batches;
}

Batch first_part_of(Batch batch, std::uint64_t bytes) {
  const TensorTerms& terms = batch.tensors.front()->terms;
  // The parts of a tensor cannot be combined by Adasum one by one.
  const bool is_cut = batch.tensors.size() == 1 && !batch.failure &&
                      terms.call.kind == CallKind::kAllreduce && terms.call.op != DDL_ADASUM &&
                      terms.bytes() > bytes && bytes > 0;
  if (!is_cut) return batch;
  // About equal parts, which begin with a line of a cache if the tensor does.
  constexpr std::uint64_t kLine = 64;
  const std::uint64_t parts = (terms.bytes() - 1) / bytes + 1;
  const std::uint64_t lines = terms.bytes() / parts / kLine + 1;
  batch.count = std::min(lines * kLine / element_size(terms.call.dtype), terms.call.count);
  return batch;
}

std::vector<Batch> parts_after(const Batch& part) {
  std::vector<Batch> parts;
  if (part.is_last()) return parts;
  const std::uint64_t all = part.tensors.front()->terms.call.count;
  for (std::uint64_t first = part.first + part.count; first < all; first += part.count) {
    parts.push_back(part);
    parts.back().first = first;
    parts.back().count = std::min(part.count, all - first);
  }
  return parts;
}

bool Prediction::are_alike(const Sequence& a, const Sequence& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const AgreedTensorPtr& x, const AgreedTensorPtr& y) {
        return x == y ||
               (x->name == y->name && x->terms == y->terms && x->follows_completion == y->follows_completion);
      });
}

const Prediction::Expected* Prediction::find(const std::string& name, const TensorTerms& terms) const {
  const auto found = expected_.find(name);
  return found == expected_.end() || found->second.tensor->terms != terms ? nullptr : &found->second;
}

const Batch* Prediction::overtaking(const std::string& name, const TensorTerms& terms) const {
  if (!has_priorities_ || !next_) return nullptr;
  const Expected* const found = find(name, terms);
  if (found == nullptr || found->is_done) return nullptr;
  const Batch& batch = batches_[found->batch];
  return batch.priority() > next_->priority() ? &batch : nullptr;
}

void Prediction::executed(const std::vector<AgreedTensorPtr>& tensors) {
  for (const AgreedTensorPtr& tensor : tensors) {
    // A name that comes again begins a step.
    if (!names_of_step_.insert(tensor->name).second) {
      begin_step();
      names_of_step_.insert(tensor->name);
    }
    this_step_.push_back(tensor);
    const auto found = expected_.find(tensor->name);
    if (found != expected_.end() && !std::exchange(found->second.is_done, true)) ++done_;
    const bool is_whole = is_whole_ && !expected_.empty() && done_ == expected_.size();
    if (is_whole || this_step_.size() >= kLongestStep * limits_.names) begin_step();
  }
  find_next();
}

void Prediction::end_step() {
  begin_step();
  find_next();
}

void Prediction::begin_step() {
  if (this_step_.empty()) return;
  ++steps_;
  // What happened once may be an exception, such as an evaluation between two steps.
  const bool is_first = sequence_.empty();
  const bool has_settled = are_alike(this_step_, last_step_) && !are_alike(this_step_, sequence_);
  last_step_ = std::move(this_step_);
  this_step_.clear();
  names_of_step_.clear();
  if (is_first || has_settled) expect(last_step_);
  for (auto& [name, expected] : expected_) expected.is_done = false;
  done_ = 0;
  first_open_ = 0;
}

void Prediction::expect(const Sequence& sequence) {
  sequence_ = sequence;
  // Tensors of a group are executed together or not at all: what a rank has of them cannot be entered alone.
  Sequence remembered;
  std::copy_if(sequence.begin(), sequence.end(), std::back_inserter(remembered),
               [](const AgreedTensorPtr& tensor) { return tensor->terms.group.empty(); });
  // Of a longer step, the tensors that follow belong to it, too.
  is_whole_ = remembered.size() <= limits_.names;
  if (!is_whole_) remembered.resize(limits_.names);
  batches_ = batches_of(remembered, bytes_of_predicted_batch(remembered, limits_.fusion_bytes));
  expected_.clear();
  has_priorities_ = false;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    has_priorities_ = has_priorities_ || batches_[i].priority() != batches_.front().priority();
    for (const AgreedTensorPtr& tensor : batches_[i].tensors) expected_[tensor->name] = {tensor, i, false};
  }
}

void Prediction::find_next() {
  ++version_;
  next_.reset();
  for (; first_open_ < batches_.size(); ++first_open_) {
    Batch open;
    for (const AgreedTensorPtr& tensor : batches_[first_open_].tensors) {
      if (!expected_.at(tensor->name).is_done) open.tensors.push_back(tensor);
    }
    if (open.tensors.empty()) continue;
    next_ = first_part_of(std::move(open), limits_.fusion_bytes);
    return;
  }
}

}  // namespace ddl::runtime
