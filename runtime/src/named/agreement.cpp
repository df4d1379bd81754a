#include "runtime/src/named/agreement.h"

#include <algorithm>

#include "base/text.h"

namespace ddl::runtime {

Agreement::Agreement(std::vector<std::string> labels, Prediction::Limits limits)
    : labels_(std::move(labels)),
      limits_(limits),
      prediction_(limits),
      is_joined_(labels_.size(), 0),
      steps_(labels_.size(), 0) {}

const Batch* Agreement::predicted() const {
  return agreed_.empty() && joined_ == 0 ? prediction_.next() : nullptr;
}

Agreement::Round Agreement::add_round(const std::vector<Frame>& frames) {
  Round round;
  limits_.fusion_bytes = frames.front().fusion_bytes;
  prediction_.set_fusion_bytes(limits_.fusion_bytes);
  std::optional<int> newest;
  for (std::size_t rank = 0; rank < frames.size(); ++rank) {
    const Frame& frame = frames[rank];
    for (const Announcement& announcement : frame.announcements) {
      Announced& announced = announced_[announcement.name];
      if (announced.by_rank.empty()) announced.order = ++announcements_;
      announced.by_rank[static_cast<int>(rank)] = announcement;
      round.has_news = true;
    }
    if (frame.has_joined && is_joined_[rank] == 0) {
      is_joined_[rank] = 1;
      ++joined_;
      newest = static_cast<int>(rank);
      round.has_news = true;
    }
    round.has_news = round.has_news || frame.steps != steps_[rank];
    steps_[rank] = frame.steps;
  }
  agree_on(take_ready());
  if (const std::uint64_t ended = *std::min_element(steps_.begin(), steps_.end()); ended > ended_steps_) {
    ended_steps_ = ended;
    prediction_.end_step();
  }
  if (newest && joined_ == std::ssize(labels_)) {
    round.last_joined = newest;
    std::fill(is_joined_.begin(), is_joined_.end(), std::uint8_t{0});
    joined_ = 0;
  }
  return round;
}

bool Agreement::is_complete(const Announced& announced) const {
  for (std::size_t rank = 0; rank < labels_.size(); ++rank) {
    if (is_joined_[rank] == 0 && !announced.by_rank.contains(static_cast<int>(rank))) return false;
  }
  return true;
}

std::vector<Agreement::Announced> Agreement::take_ready() {
  // The tensors of a group wait for each other. If a program uses the name of a group again before its tensors are
  // complete, the oldest tensors that make a whole group go together, and the others wait for the rest of theirs.
  std::map<std::string, std::vector<std::uint64_t>> orders_of_group;
  std::map<std::string, std::uint32_t> size_of_group;
  for (const auto& [name, announced] : announced_) {
    const TensorTerms& terms = announced.by_rank.begin()->second.terms;
    if (terms.group.empty() || !is_complete(announced)) continue;
    orders_of_group[terms.group].push_back(announced.order);
    const auto [size, is_new] = size_of_group.try_emplace(terms.group, terms.group_size);
    if (!is_new) size->second = std::min(size->second, terms.group_size);
  }
  for (auto& [group, orders] : orders_of_group) {
    std::sort(orders.begin(), orders.end());
    orders.resize(orders.size() - orders.size() % size_of_group[group]);
  }
  const auto is_in_whole_group = [&](const Announced& announced, const std::string& group) {
    const std::vector<std::uint64_t>& orders = orders_of_group[group];
    return std::binary_search(orders.begin(), orders.end(), announced.order);
  };
  std::vector<Announced> ready;
  for (auto at = announced_.begin(); at != announced_.end();) {
    const TensorTerms& terms = at->second.by_rank.begin()->second.terms;
    const bool is_ready =
        is_complete(at->second) && (terms.group.empty() || is_in_whole_group(at->second, terms.group));
    if (is_ready) ready.push_back(std::move(at->second));
    at = is_ready ? announced_.erase(at) : std::next(at);
  }
  std::sort(ready.begin(), ready.end(),
            [](const Announced& a, const Announced& b) { return a.order < b.order; });
  return ready;
}

std::optional<std::string> Agreement::complaint(const Announced& announced) const {
  const auto& [first_rank, first] = *announced.by_rank.begin();
  const auto label = [&](int rank) { return labels_[rank]; };
  for (const auto& [rank, other] : announced.by_rank) {
    if (first.terms != other.terms) {
      return "the ranks gave different tensors the name \"" + first.name + "\": " + label(first_rank) +
             " called " + first.terms.describe() + ", " + label(rank) + " called " + other.terms.describe();
    }
  }
  const auto has_no_data = [&](std::size_t rank) {
    return is_joined_[rank] != 0 && !announced.by_rank.contains(static_cast<int>(rank));
  };
  if (first.terms.fails_if_joined && announced.by_rank.size() < labels_.size()) {
    std::size_t absent = 0;
    while (!has_no_data(absent)) ++absent;
    return "tensor \"" + first.name + "\" of " + label(first_rank) + " needs all ranks, and " +
           label(static_cast<int>(absent)) + " has joined and has no data";
  }
  const auto root = static_cast<std::size_t>(first.terms.call.root);
  if (first.terms.call.kind == CallKind::kBroadcast && has_no_data(root)) {
    return "tensor \"" + first.name + "\" of " + label(first_rank) + " cannot be broadcast: its root, " +
           label(first.terms.call.root) + ", has joined and has no data";
  }
  for (const auto& [rank, announcement] : announced.by_rank) {
    for (std::size_t to = 0; to < announcement.send_counts.size(); ++to) {
      if (announcement.send_counts[to] == 0 || !has_no_data(to)) continue;
      return "tensor \"" + first.name + "\": " + label(rank) + " sends " +
             counted(static_cast<std::int64_t>(announcement.send_counts[to]), "element") + " to " +
             label(static_cast<int>(to)) + ", which has joined";
    }
  }
  return std::nullopt;
}

Batch Agreement::batch_of_one(const Announced& announced) const {
  const Announcement& first = announced.by_rank.begin()->second;
  AgreedTensor tensor{first.name, first.terms, false};
  Batch batch;
  batch.failure = complaint(announced);
  for (const auto& [rank, announcement] : announced.by_rank)
    tensor.follows_completion = tensor.follows_completion || announcement.follows_completion;
  if (announced.by_rank.size() < labels_.size()) {
    batch.has_data.assign(labels_.size(), 0);
    for (const auto& [rank, announcement] : announced.by_rank) batch.has_data[rank] = 1;
  }
  batch.tensors.push_back(std::make_shared<const AgreedTensor>(std::move(tensor)));
  return batch;
}

void Agreement::agree_on(const std::vector<Announced>& ready) {
  std::vector<Batch> batches;
  std::map<std::string, std::string> failed_groups;
  for (const Announced& announced : ready) {
    batches.push_back(batch_of_one(announced));
    const std::string& group = batches.back().tensors.front()->terms.group;
    if (batches.back().failure && !group.empty()) failed_groups.emplace(group, *batches.back().failure);
  }
  for (Batch& batch : batches) {
    const auto failed = failed_groups.find(batch.tensors.front()->terms.group);
    if (failed != failed_groups.end() && !batch.failure)
      batch.failure = "its group \"" + failed->first + "\" fails: " + failed->second;
  }
  std::stable_sort(batches.begin(), batches.end(),
                   [](const Batch& a, const Batch& b) { return a.priority() > b.priority(); });
  // Several as one.
  std::vector<Batch> fused;
  std::uint64_t in_last = 0;
  for (Batch& batch : batches) {
    const TensorTerms& terms = batch.tensors.front()->terms;
    // Small tensors of lower priorities hardly delay the one that they go with.
    const std::uint64_t limit = !fused.empty() && batch.priority() == fused.back().priority()
                                    ? limits_.fusion_bytes
                                    : std::min(limits_.fusion_bytes, kSmallestBatch);
    const bool joins_last = !fused.empty() && !batch.failure && !fused.back().failure &&
                            terms.fuses_with(fused.back().tensors.front()->terms) &&
                            batch.has_data == fused.back().has_data && in_last + terms.bytes() <= limit;
    if (joins_last) {
      fused.back().tensors.push_back(batch.tensors.front());
      in_last += terms.bytes();
    } else {
      in_last = terms.bytes();
      fused.push_back(std::move(batch));
    }
  }
  for (Batch& batch : fused) {
    const Batch& first = agreed_.emplace_back(first_part_of(std::move(batch), limits_.fusion_bytes));
    for (Batch& part : parts_after(first)) agreed_.push_back(std::move(part));
  }
  std::stable_sort(agreed_.begin(), agreed_.end(),
                   [](const Batch& a, const Batch& b) { return a.priority() > b.priority(); });
}

void Agreement::executed() {
  if (!agreed_.empty()) {
    const Batch batch = std::move(agreed_.front());
    agreed_.pop_front();
    // What failed, or lacked the data of some ranks, is not expected again.
    if (batch.is_last() && !batch.failure && batch.has_data.empty()) prediction_.executed(batch.tensors);
    return;
  }
  const Batch batch = *prediction_.next();
  // Some ranks may have announced some of them.
  for (const AgreedTensorPtr& tensor : batch.tensors) announced_.erase(tensor->name);
  // All ranks have begun the tensor, so the rest of it is agreed on.
  for (Batch& part : parts_after(batch)) agreed_.push_back(std::move(part));
  if (batch.is_last()) prediction_.executed(batch.tensors);
}

}  // namespace ddl::runtime
