#include "launcher/head/pmix_relay.h"

#include <algorithm>

namespace ddl::launcher {

PmixRelay::PmixRelay(EventLoop& loop, std::vector<int> rank_nodes, Send send)
    : loop_(loop), rank_nodes_(std::move(rank_nodes)), send_(std::move(send)) {
  for (const int node : rank_nodes_) all_nodes_.insert(static_cast<std::size_t>(node));
}

void PmixRelay::on(std::size_t node, message::PmixFence&& fence) {
  if (!std::all_of(fence.ranks.begin(), fence.ranks.end(), [this](int rank) { return is_rank(rank); }))
    return;
  Group& group = groups_[fence.ranks];
  if (group.nodes.empty()) {
    for (const int rank : fence.ranks) {
      group.nodes.insert(static_cast<std::size_t>(rank_nodes_[static_cast<std::size_t>(rank)]));
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
  const message::Any done = message::PmixFenceDone{ranks, std::move(data)};
  for (const std::size_t node : group.nodes) send_(node, done);
}

void PmixRelay::on(std::size_t node, message::PmixModex&& question) {
  if (!is_rank(question.rank)) return;
  question.node = static_cast<int>(node);
  send_(static_cast<std::size_t>(rank_nodes_[static_cast<std::size_t>(question.rank)]), question);
}

void PmixRelay::on(std::size_t, message::PmixModexData&& answer) {
  const auto node = static_cast<std::size_t>(answer.node);
  if (answer.node >= 0 && all_nodes_.contains(node)) send_(node, answer);
}

void PmixRelay::on(std::size_t node, message::PmixPublish&& request) {
  const auto status = names_.publish(std::move(request.pairs), request.first_read_only);
  send_(node, message::PmixNames{request.id, status, {}});
}

void PmixRelay::on(std::size_t node, message::PmixLookup&& request) {
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

void PmixRelay::on(std::size_t node, message::PmixUnpublish&& request) {
  names_.unpublish(request.publisher, request.keys);
  send_(node, message::PmixNames{request.id, NameService::Status::kDone, {}});
}

void PmixRelay::on(std::size_t node, message::PmixEvent&& event) {
  const message::Any passed_on = std::move(event);
  for (const std::size_t other : all_nodes_) {
    if (other != node) send_(other, passed_on);
  }
}

}  // namespace ddl::launcher
