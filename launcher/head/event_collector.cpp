#include "launcher/head/event_collector.h"

#include <chrono>
#include <utility>

namespace ddl::launcher {

EventCollector::EventCollector(EventLoop& loop, std::int64_t id, bool of_timeline, Actions actions,
                               std::size_t parallel, std::chrono::milliseconds limit)
    : loop_(loop),
      id_(id),
      of_timeline_(of_timeline),
      parallel_(parallel),
      limit_(limit),
      actions_(std::move(actions)) {}

void EventCollector::start(std::vector<int> ranks, std::int64_t latest) {
  latest_ = latest;
  waiting_.assign(ranks.begin(), ranks.end());
  ask_more();
}

void EventCollector::ask_more() {
  if (std::exchange(is_asking_, true)) return;
  while (!waiting_.empty() && asked_.size() < parallel_) {
    const int rank = waiting_.front();
    waiting_.pop_front();
    asked_[rank].collected.rank = rank;
    ask(rank);
  }
  is_asking_ = false;
  if (!waiting_.empty() || !asked_.empty() || std::exchange(is_done_, true)) return;
  // Not from inside start() or on_events(): on_done may destroy this.
  done_timer_ = loop_.after(std::chrono::seconds(0), [done = actions_.on_done] { done(); });
}

void EventCollector::ask(int rank) {
  Asked& asked = asked_.at(rank);
  const std::int64_t from = asked.collected.ring.events.size();
  asked.limit = loop_.after(limit_, [this, rank] { end(rank, "its agent did not answer"); });
  if (!actions_.ask({id_, rank, latest_, from, of_timeline_})) end(rank, "its host was lost");
}

void EventCollector::on_events(const message::Events& piece) {
  const auto found = asked_.find(piece.rank);
  if (piece.id != id_ || found == asked_.end()) return;
  CollectedEvents& collected = found->second.collected;
  if (!message::add_piece(piece, collected.ring)) return end(piece.rank, "its agent sent something invalid");
  collected.earliest = piece.earliest;
  collected.now = piece.now;
  collected.joining_since = piece.joining_since;
  const bool is_last = piece.events.empty() || std::ssize(collected.ring.events) >= piece.total;
  is_last ? end(piece.rank, "") : ask(piece.rank);
}

void EventCollector::on_lost(const std::function<bool(int rank)>& is_lost, const std::string& why) {
  std::vector<int> lost;
  for (const auto& [rank, asked] : asked_) {
    if (is_lost(rank)) lost.push_back(rank);
  }
  for (const int rank : lost) end(rank, why);
}

void EventCollector::end(int rank, const std::string& missing) {
  auto node = asked_.extract(rank);
  if (node.empty()) return;
  node.mapped().limit.cancel();
  CollectedEvents collected = std::move(node.mapped().collected);
  collected.missing = missing;
  actions_.on_rank(std::move(collected));
  ask_more();
}

}  // namespace ddl::launcher
