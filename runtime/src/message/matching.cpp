#include "runtime/src/message/matching.h"

#include <algorithm>

namespace ddl::runtime {
namespace {

bool receive_fits(const Message& receive, const Arrival& arrival) {
  return (receive.peer == arrival.from || receive.peer == DDL_ANY_RANK) &&
         (receive.tag == arrival.tag || receive.tag == DDL_ANY_TAG);
}

}  // namespace

std::optional<Arrival> Matching::post(const MessagePtr& receive) {
  if (const auto arrived = unexpected_.find(receive->set); arrived != unexpected_.end()) {
    std::list<Arrival>& list = arrived->second;
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Arrival& one) { return receive_fits(*receive, one); });
    if (found != list.end()) {
      Arrival arrival = std::move(*found);
      list.erase(found);
      if (list.empty()) unexpected_.erase(arrived);
      return arrival;
    }
  }
  posted_[receive->set].push_back(receive);
  return std::nullopt;
}

MessagePtr Matching::take(const Arrival& arrival) {
  const auto posted = posted_.find(arrival.set);
  if (posted == posted_.end()) return nullptr;
  std::list<MessagePtr>& list = posted->second;
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const MessagePtr& one) { return receive_fits(*one, arrival); });
  if (found == list.end()) return nullptr;
  MessagePtr receive = std::move(*found);
  list.erase(found);
  if (list.empty()) posted_.erase(posted);
  return receive;
}

MessagePtr Matching::waiting_for(int rank) const {
  for (const auto& [set, list] : posted_) {
    for (const MessagePtr& receive : list) {
      if (receive->peer == rank) return receive;
    }
  }
  return nullptr;
}

bool is_in_vain(const Message& receive, const std::unordered_set<int>& left, int own) {
  return receive.peer == DDL_ANY_RANK && receive.job_ranks.size() > 1 &&
         std::all_of(receive.job_ranks.begin(), receive.job_ranks.end(),
                     [&](int rank) { return rank == own || left.contains(rank); });
}

MessagePtr Matching::waiting_in_vain(const std::unordered_set<int>& left, int own) const {
  for (const auto& [set, list] : posted_) {
    for (const MessagePtr& receive : list) {
      if (is_in_vain(*receive, left, own)) return receive;
    }
  }
  return nullptr;
}

std::list<Arrival> Matching::forget_set(std::uint32_t set) {
  const auto found = unexpected_.find(set);
  if (found == unexpected_.end()) return {};
  std::list<Arrival> forgotten = std::move(found->second);
  unexpected_.erase(found);
  return forgotten;
}

std::vector<MessagePtr> Matching::clear() {
  std::vector<MessagePtr> all;
  for (auto& [set, list] : posted_) all.insert(all.end(), list.begin(), list.end());
  posted_.clear();
  unexpected_.clear();
  return all;
}

}  // namespace ddl::runtime
