#include "runtime/src/named/submission.h"

#include <algorithm>
#include <utility>

namespace ddl::runtime {

std::vector<SubmissionPtr> OpenTensors::of(const Batch& batch, int own_rank) const {
  std::vector<SubmissionPtr> submissions;
  // A rank that had joined may have submitted a tensor of the same name since.
  if (!batch.has_data.empty() && batch.has_data[own_rank] == 0) return submissions;
  for (const AgreedTensorPtr& tensor : batch.tensors) {
    if (const auto found = by_name_.find(tensor->name); found != by_name_.end())
      submissions.push_back(found->second);
  }
  return submissions;
}

void OpenTensors::add(const std::vector<SubmissionPtr>& submissions, const Prediction& prediction) {
  const std::size_t before = unannounced_.size();
  std::size_t added = 0;
  try {
    unannounced_.insert(unannounced_.end(), submissions.begin(), submissions.end());
    for (; added < submissions.size(); ++added)
      by_name_.emplace(submissions[added]->name(), submissions[added]);
  } catch (...) {
    unannounced_.resize(std::min(before, unannounced_.size()));
    while (added-- > 0) by_name_.erase(submissions[added]->name());
    throw;
  }
  for (const SubmissionPtr& submission : submissions) {
    submission->phase.store(Submission::Phase::kOpen, std::memory_order_relaxed);
    if (!prediction.expects(submission->name(), submission->terms())) ++unexpected_;
  }
}

bool OpenTensors::want(Submission& submission) {
  if (submission.is_wanted) return false;
  submission.is_wanted.store(true, std::memory_order_relaxed);
  const bool is_open = submission.phase == Submission::Phase::kOpen;
  if (is_open) ++wanted_;
  return is_open;
}

void OpenTensors::remove(std::span<const SubmissionPtr> submissions) {
  // A tensor that fails leaves the batch that is expected without changing it.
  found_ = 0;
  for (const SubmissionPtr& submission : submissions) {
    by_name_.erase(submission->name());
    if (submission->is_wanted) --wanted_;
    submission->phase.store(Submission::Phase::kEnded, std::memory_order_relaxed);
  }
  std::erase_if(unannounced_, [](const SubmissionPtr& submission) {
    return submission->phase != Submission::Phase::kOpen;
  });
}

std::vector<Announcement> OpenTensors::announce() {
  std::vector<Announcement> announcements;
  for (const SubmissionPtr& submission : unannounced_) announcements.push_back(submission->announcement);
  unannounced_.clear();
  unexpected_ = 0;
  return announcements;
}

void OpenTensors::set_announced(std::span<const SubmissionPtr> submissions) {
  for (const SubmissionPtr& submission : submissions) std::erase(unannounced_, submission);
}

void OpenTensors::follow(const Prediction& prediction) {
  if (std::exchange(version_, prediction.version()) == prediction.version()) return;
  found_ = 0;
  unexpected_ = static_cast<std::size_t>(
      std::count_if(unannounced_.begin(), unannounced_.end(), [&](const SubmissionPtr& submission) {
        return !prediction.expects(submission->name(), submission->terms());
      }));
}

bool OpenTensors::has_predicted(const Agreement& agreement) {
  follow(agreement.prediction());
  const Batch* const batch = agreement.predicted();
  if (batch == nullptr) return false;
  for (; found_ < batch->tensors.size(); ++found_) {
    const AgreedTensor& tensor = *batch->tensors[found_];
    const auto found = by_name_.find(tensor.name);
    if (found == by_name_.end() || found->second->terms() != tensor.terms) return false;
  }
  return true;
}

bool OpenTensors::overtakes(const Agreement& agreement) {
  const auto any_unannounced = [this](const auto& overtakes_next) {
    return std::any_of(unannounced_.begin(), unannounced_.end(), overtakes_next);
  };
  if (const Batch* const agreed = agreement.agreed(); agreed != nullptr) {
    return any_unannounced(
        [&](const SubmissionPtr& submission) { return submission->terms().priority > agreed->priority(); });
  }
  return has_predicted(agreement) && any_unannounced([&](const SubmissionPtr& submission) {
           const Batch* const batch =
               agreement.prediction().overtaking(submission->name(), submission->terms());
           return batch != nullptr &&
                  std::all_of(batch->tensors.begin(), batch->tensors.end(),
                              [this](const AgreedTensorPtr& tensor) { return contains(tensor->name); });
         });
}

bool OpenTensors::is_impatient(const Agreement& agreement) {
  follow(agreement.prediction());
  return unexpected_ > 0 || wanted_ > 0 || patience().has_passed();
}

}  // namespace ddl::runtime
