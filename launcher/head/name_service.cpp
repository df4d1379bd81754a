#include "launcher/head/name_service.h"

#include <algorithm>

namespace ddl::launcher {

NameService::Status NameService::publish(Pairs pairs, bool first_read_only) {
  for (const auto& pair : pairs) {
    if (items_.contains(pair.key)) return Status::kDuplicate;
  }
  for (auto& pair : pairs) items_.try_emplace(pair.key, Item{pair, first_read_only});
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (!has_all(waiting->keys)) {
      ++waiting;
      continue;
    }
    const Waiting ready = std::move(*waiting);
    waiting = waiting_.erase(waiting);
    answer_now(ready.keys, ready.answer);
  }
  return Status::kDone;
}

std::optional<NameService::LookupId> NameService::lookup(std::vector<std::string> keys, bool wait,
                                                         Answer answer) {
  if (!wait || has_all(keys)) {
    answer_now(keys, answer);
    return std::nullopt;
  }
  waiting_.push_back({++last_id_, std::move(keys), std::move(answer)});
  return last_id_;
}

void NameService::time_out(LookupId id) {
  const auto waiting =
      std::find_if(waiting_.begin(), waiting_.end(), [id](const Waiting& one) { return one.id == id; });
  if (waiting == waiting_.end()) return;
  const Answer answer = std::move(waiting->answer);
  waiting_.erase(waiting);
  answer(Status::kTimedOut, {});
}

void NameService::unpublish(int publisher, const std::vector<std::string>& keys) {
  std::erase_if(items_, [&](const auto& item) {
    const bool named = keys.empty() || std::find(keys.begin(), keys.end(), item.first) != keys.end();
    return named && item.second.pair.publisher == publisher;
  });
}

void NameService::answer_now(const std::vector<std::string>& keys, const Answer& answer) {
  Pairs found;
  for (const auto& key : keys) {
    const auto item = items_.find(key);
    if (item == items_.end()) continue;
    found.push_back(item->second.pair);
    if (item->second.first_read_only) items_.erase(item);
  }
  const Status status = found.empty()                ? Status::kNotFound
                        : found.size() < keys.size() ? Status::kPartial
                                                     : Status::kDone;
  answer(status, std::move(found));
}

bool NameService::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return items_.contains(key); });
}

}  // namespace ddl::launcher
