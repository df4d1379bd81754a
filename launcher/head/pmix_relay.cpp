#include "launcher/head/pmix_relay.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ddl::launcher {

NameService::Status NameService::publish(const Pairs& pairs, bool first_read_only) {
  for (const auto& pair : pairs) {
    if (items_.contains(pair.key)) return Status::kDuplicate;
  }
  for (const auto& pair : pairs) items_.try_emplace(pair.key, Item{pair, first_read_only});
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

PmixRelay::PmixRelay(EventLoop& loop, std::vector<int> rank_nodes, Send send)
    : loop_(loop), rank_nodes_(std::move(rank_nodes)), send_(std::move(send)) {
  for (const int node : rank_nodes_) all_nodes_.insert(node);
}

void PmixRelay::on(int node, message::PmixFence&& fence) {
  if (!std::all_of(fence.ranks.begin(), fence.ranks.end(), [this](int rank) { return is_rank(rank); }))
    return;
  Group& group = groups_[fence.ranks];
  if (group.nodes.empty()) {
    for (const int rank : fence.ranks) {
      group.nodes.insert(rank_nodes_[rank]);
    }
    if (fence.ranks.empty()) group.nodes = all_nodes_;
  }
  if (!group.nodes.contains(node)) return;
  group.arrived[node].push_back(std::move(fence.data));
  if (group.arrived.size() == group.nodes.size()) complete(fence.ranks, group);
}

void PmixRelay::complete(const std::vector<int>& ranks, Group& group) {
  std::string data;
  for (auto entry = group.arrived.begin(); entry != group.arrived.end();) {
    data += entry->second.front();
    entry->second.pop_front();
    entry = entry->second.empty() ? group.arrived.erase(entry) : std::next(entry);
  }
  const message::HeadToAgent done = message::PmixFenceDone{ranks, std::move(data)};
  for (const int node : group.nodes) send_(node, done);
}

void PmixRelay::on(int node, message::PmixModex&& request) {
  if (!is_rank(request.rank)) return;
  request.node = node;
  send_(rank_nodes_[request.rank], request);
}

void PmixRelay::on(int, message::PmixModexData&& answer) {
  if (all_nodes_.contains(answer.node)) send_(answer.node, answer);
}

void PmixRelay::on(int node, message::PmixPublish&& request) {
  const auto status = names_.publish(request.pairs, request.first_read_only);
  send_(node, message::PmixNames{request.id, status, {}});
}

void PmixRelay::on(int node, message::PmixLookup&& request) {
  const auto waiting =
      names_.lookup(std::move(request.keys), request.wait,
                    [this, node, id = request.id](NameService::Status status, NameService::Pairs found) {
                      send_(node, message::PmixNames{id, status, std::move(found)});
                    });
  if (!waiting || request.timeout_seconds <= 0) return;
  timeouts_[*waiting] = loop_.after(std::chrono::seconds(request.timeout_seconds), [this, id = *waiting] {
    names_.time_out(id);
    loop_.post([this, id] { timeouts_.erase(id); });
  });
}

void PmixRelay::on(int node, message::PmixUnpublish&& request) {
  names_.unpublish(request.publisher, request.keys);
  send_(node, message::PmixNames{request.id, NameService::Status::kDone, {}});
}

void PmixRelay::on(int node, message::PmixEvent&& event) {
  const message::HeadToAgent forwarded = std::move(event);
  for (const int other : all_nodes_) {
    if (other != node) send_(other, forwarded);
  }
}

void PmiBarriers::on(int node, message::PmiBarrier&& barrier) {
  if (!nodes_.contains(node)) return;
  arrived_.try_emplace(node, std::move(barrier.pairs));
  if (arrived_.size() < nodes_.size()) return;
  message::PmiBarrierDone done;
  for (auto& [from, pairs] : std::exchange(arrived_, {}))
    done.pairs.insert(done.pairs.end(), std::make_move_iterator(pairs.begin()),
                      std::make_move_iterator(pairs.end()));
  const message::HeadToAgent all = std::move(done);
  for (const int to : nodes_) send_(to, all);
}

}  // namespace ddl::launcher
