#include "runtime/src/message/matching.h"

#include <algorithm>

namespace ddl::runtime {
namespace {

bool receive_fits(const Message& receive, const Arrival& arrival) {
  return (receive.peer == arrival.from || receive.peer == DDL_ANY_RANK) &&
         (receive.tag == arrival.tag || receive.tag == DDL_ANY_TAG);
}

}  // namespace

std::string describe_size(std::uint64_t bytes, ddl_dtype dtype) {
  const std::size_t size = element_size(dtype);
  std::string text = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (size == 0) return text;
  const std::uint64_t count = bytes / size;
  return text + " (" + dtype_name(dtype) + ", " + std::to_string(count) +
         (count == 1 ? " element)" : " elements)");
}

std::string Message::describe() const {
  return std::string(sends ? "a message that is sent" : "a message that is received") + " (" +
         dtype_name(dtype) + ", " + std::to_string(count) + (count == 1 ? " element" : " elements") +
         (tag == DDL_ANY_TAG ? ", any tag)" : ", tag " + std::to_string(tag) + ")");
}

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

std::vector<MessagePtr> Matching::clear() {
  std::vector<MessagePtr> all;
  for (auto& [set, list] : posted_) all.insert(all.end(), list.begin(), list.end());
  posted_.clear();
  unexpected_.clear();
  return all;
}

}  // namespace ddl::runtime
