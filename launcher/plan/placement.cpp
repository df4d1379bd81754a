#include "launcher/plan/placement.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace ddl::launcher {
namespace {

std::int64_t sum_of(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// How many ranks each node takes, by index in the allocation.
struct Capacity {
  std::vector<int> slots;  // at first
  std::vector<int> spare;  // without --oversubscribe
  std::vector<int> max;    // with --oversubscribe
};

/// Of the ranks that take slots.
int num_placed(const JobSpec& spec) { return spec.num_ranks - num_without_slots(spec.roles); }

Capacity capacity_of(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots,
                     const std::vector<int>& mapped_rank_limits) {
  Capacity capacity;
  for (int i = 0; i < std::ssize(slots); ++i) {
    int max_ranks = num_placed(spec);
    if (spec.ranks_per_node > 0) max_ranks = std::min(max_ranks, spec.ranks_per_node);
    if (!mapped_rank_limits.empty()) max_ranks = std::min(max_ranks, mapped_rank_limits[i]);
    if (const auto max_slots = allocation.nodes[i].max_slots) max_ranks = std::min(max_ranks, *max_slots);
    capacity.max.push_back(max_ranks);
    // No limit is larger than the number of ranks, so that sums do not overflow.
    capacity.slots.push_back(std::clamp(slots[i], 0, max_ranks));
    capacity.spare.push_back(
        std::clamp(allocation.nodes[i].spare_slots.value_or(0), capacity.slots.back(), max_ranks));
  }
  return capacity;
}

/// Distributes `left` ranks, one to each node in turn, until every node has reached its limit. Calls assign(node)
/// for each rank. Returns how many ranks are left.
template <class Assign>
int distribute(const std::vector<int>& limits, std::vector<int>& counts, int left, Assign assign) {
  std::vector<int> open;
  for (int i = 0; i < std::ssize(limits); ++i) open.push_back(i);
  while (left > 0) {
    std::erase_if(open, [&](int node) { return counts[node] >= limits[node]; });
    if (open.empty()) break;
    for (const int node : open) {
      if (left == 0) break;
      ++counts[node];
      --left;
      assign(node);
    }
  }
  return left;
}

/// The node of every rank, as an index into the allocation.
std::vector<int> nodes_of_ranks(const JobSpec& spec, const Capacity& capacity) {
  std::vector<int> counts(capacity.slots.size(), 0);
  std::vector<int> nodes;
  nodes.reserve(num_placed(spec));
  if (spec.map_by == MapBy::kNode) {
    const auto assign = [&nodes](int node) { nodes.push_back(node); };
    int left = distribute(capacity.slots, counts, num_placed(spec), assign);
    left = distribute(capacity.spare, counts, left, assign);
    distribute(capacity.max, counts, left, assign);
    return nodes;
  }
  int left = num_placed(spec);
  for (int i = 0; i < std::ssize(counts); ++i) {
    counts[i] = std::min(capacity.slots[i], left);
    left -= counts[i];
  }
  left = distribute(capacity.spare, counts, left, [](int) {});
  distribute(capacity.max, counts, left, [](int) {});
  for (int i = 0; i < std::ssize(counts); ++i) nodes.insert(nodes.end(), counts[i], i);
  return nodes;
}

/// Numbers the ranks anew; each node keeps as many as it has.
void number(RankBy rank_by, int num_nodes, std::vector<int>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  if (rank_by == RankBy::kSlot) return;
  std::vector<int> limits(num_nodes, 0), counts(num_nodes, 0);
  for (const int node : nodes) ++limits[node];
  const int ranks = std::ssize(nodes);
  nodes.clear();
  distribute(limits, counts, ranks, [&nodes](int node) { nodes.push_back(node); });
}

/// Ranks without slots: to the nodes that have ranks in turn, beginning with that of rank 0.
void add_without_slots(const JobSpec& spec, std::vector<int>& nodes) {
  const int count = num_without_slots(spec.roles);
  if (count == 0) return;
  std::vector<int> used;
  for (const int node : nodes) {
    if (std::find(used.begin(), used.end(), node) == used.end()) used.push_back(node);
  }
  for (int i = 0; i < count; ++i) nodes.push_back(used[i % used.size()]);
}

/// "node1 2, node2 4"; "" for a single host, and for too many hosts for one line.
std::string slots_by_host(const Allocation& allocation, const std::vector<int>& slots) {
  constexpr std::size_t kMaxListedHosts = 8;
  if (slots.size() < 2 || slots.size() > kMaxListedHosts) return "";
  std::vector<std::string> parts;
  for (int i = 0; i < std::ssize(slots); ++i) {
    parts.push_back(allocation.nodes[i].name + " " + std::to_string(slots[i]));
  }
  return join(parts, ", ");
}

/// Why a job takes no more than a number of ranks, even with --oversubscribe.
std::string limit_text(const JobSpec& spec, const Allocation& allocation,
                       const std::vector<int>& mapped_rank_limits) {
  if (!mapped_rank_limits.empty()) {
    const std::string by_host = slots_by_host(allocation, mapped_rank_limits);
    return "--map-by " + affinity::text_of(spec.binding.mapping) + (by_host.empty() ? "" : ": " + by_host);
  }
  if (spec.ranks_per_node == 0) return "the sum of its max_slots";
  return "--ranks-per-node " + std::to_string(spec.ranks_per_node) + " on " +
         counted(allocation.nodes.size(), "host");
}

Error too_many_ranks(const JobSpec& spec, const Allocation& allocation, const Capacity& capacity,
                     const std::vector<int>& mapped_rank_limits) {
  const std::string asked = counted(num_placed(spec), "rank") + " asked for, and ";
  const std::int64_t max_ranks = sum_of(capacity.max);
  const bool many_hosts = allocation.nodes.size() > 1;
  std::string text;
  if (max_ranks < num_placed(spec)) {
    // Not even with --oversubscribe.
    text = asked + allocation.origin + " takes " + std::to_string(max_ranks) + " at most";
    text += " (" + limit_text(spec, allocation, mapped_rank_limits) + ")";
    text += "; ask for -np " + std::to_string(max_ranks) + ", or give more hosts";
    return {ErrorCode::kInvalidArgument, std::move(text)};
  }
  const std::int64_t total = sum_of(capacity.spare);
  std::string detail = slots_by_host(allocation, capacity.spare);
  const bool found = std::none_of(allocation.nodes.begin(), allocation.nodes.end(),
                                  [](const AllocatedNode& node) { return node.slots.has_value(); });
  if (found) {
    detail += (detail.empty() ? "" : "; ") + std::string("one for each CPU that ") +
              (many_hosts ? "a process may use there" : "this process may use");
  }
  text = asked + allocation.origin + " has " + counted(total, "slot");
  if (spec.ranks_per_node > 0) text += " for --ranks-per-node " + std::to_string(spec.ranks_per_node);
  if (!mapped_rank_limits.empty()) text += " for --map-by " + affinity::text_of(spec.binding.mapping);
  if (!detail.empty()) text += " (" + detail + ")";
  text += "; ";
  if (total > 0) text += "ask for -np " + std::to_string(total) + ", or ";
  text +=
      found ? "add --oversubscribe to run several ranks on a CPU" : "add --oversubscribe to go beyond them";
  return {ErrorCode::kInvalidArgument, std::move(text)};
}

/// The node of every rank that takes a slot.
Result<std::vector<int>> place_by_capacity(const JobSpec& spec, const Allocation& allocation,
                                           const std::vector<int>& slots,
                                           const std::vector<int>& mapped_rank_limits) {
  const Capacity capacity = capacity_of(spec, allocation, slots, mapped_rank_limits);
  if (sum_of(spec.oversubscribe ? capacity.max : capacity.spare) < num_placed(spec))
    return fail(too_many_ranks(spec, allocation, capacity, mapped_rank_limits));
  std::vector<int> nodes = nodes_of_ranks(spec, capacity);
  if (spec.rank_by != RankBy::kPlaced) number(spec.rank_by, slots.size(), nodes);
  return nodes;
}

std::vector<int> nodes_in(const Rankfile& ranks) {
  std::vector<int> nodes;
  for (const RankfileEntry& rank : ranks) nodes.push_back(rank.node);
  return nodes;
}

}  // namespace

Result<std::vector<int>> mapped_rank_limits(const JobSpec& spec, const Allocation& allocation,
                                            const std::vector<NodeFacts>& facts) {
  std::vector<int> limits;
  if (spec.binding.mapping.ranks_per_object == 0) return limits;
  for (int i = 0; i < std::ssize(facts); ++i) {
    const affinity::Topology& topology = facts[i].topology;
    auto limit = topology.cores.empty()
                     ? Result<int>(fail(ErrorCode::kUnavailable,
                                        "its topology is not known: " + facts[i].topology_failure))
                     : affinity::max_mapped_ranks(topology, spec.binding);
    if (!limit)
      return fail(std::move(limit.error())
                      .during("--map-by " + affinity::text_of(spec.binding.mapping))
                      .during(allocation.nodes[i].name));
    limits.push_back(*limit);
  }
  return limits;
}

Result<Placement> place(const JobSpec& spec, const Allocation& allocation, const std::vector<int>& slots,
                        const std::vector<int>& mapped_rank_limits) {
  DDL_CHECK(slots.size() == allocation.nodes.size(), std::to_string(slots.size()) + " slots");
  DDL_ASSIGN(nodes, spec.placed_ranks.empty() ? place_by_capacity(spec, allocation, slots, mapped_rank_limits)
                                              : Result<std::vector<int>>(nodes_in(spec.placed_ranks)));
  add_without_slots(spec, nodes);
  std::vector<std::vector<int>> ranks(slots.size());
  for (int rank = 0; rank < std::ssize(nodes); ++rank) ranks[nodes[rank]].push_back(rank);

  Placement placement;
  for (int i = 0; i < std::ssize(ranks); ++i) {
    if (ranks[i].empty()) continue;
    for (const int rank : ranks[i]) nodes[rank] = static_cast<int>(std::ssize(placement.nodes));
    placement.nodes.push_back({allocation.nodes[i].name, std::move(ranks[i]), i});
  }
  placement.ranks = rank_placements(nodes);
  return placement;
}

}  // namespace ddl::launcher
