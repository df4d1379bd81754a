// Splits cores among ranks: each rank gets as many as the others, of the same kinds, and what it gets shares as much as
// possible. Declared in rank_assignment.h.
//
// Packages are looked at first, then NUMA nodes, then L3 caches. If the ranks can be divided among the domains of a
// kind, or the domains among the ranks, so that every rank has its even share, no domain is cut; the ranks of one
// domain then split it in the same way. Otherwise the next kind is tried on all cores at once, and in the end the cores
// are split one by one.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "affinity/plan/rank_assignment.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

using Cores = std::vector<int>;

constexpr std::array kKinds{BindTo::kSocket, BindTo::kNuma, BindTo::kL3};

/// The domains of a kind among these cores; none where the kind is unknown.
std::vector<Domain> domains_among(const Topology& topology, const Cores& cores, BindTo kind) {
  if (kind == BindTo::kL3 && topology.l3s.empty()) return {};
  return domains_of(topology, {cores, {}, false}, kind);
}

/// How many of the cores are of each kind, by Topology::core_kinds.
std::vector<int> kind_counts(const Topology& topology, const Cores& cores) {
  std::vector<int> counts(std::max<std::size_t>(topology.core_kinds.size(), 1));
  for (const int core : cores) ++counts[topology.cores[core].kind];
  return counts;
}

/// How many ranks each domain takes, in proportion to its cores; the largest remainders are rounded up.
std::vector<int> ranks_of(const std::vector<Domain>& domains, int ranks) {
  std::int64_t cores = 0;
  for (const Domain& domain : domains) cores += std::ssize(domain.cores);
  std::vector<int> counts;
  std::vector<std::size_t> order(domains.size());
  std::iota(order.begin(), order.end(), 0);
  int left = ranks;
  for (const Domain& domain : domains) {
    counts.push_back(static_cast<int>(ranks * std::ssize(domain.cores) / cores));
    left -= counts.back();
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ranks * std::ssize(domains[a].cores) % cores > ranks * std::ssize(domains[b].cores) % cores;
  });
  for (int i = 0; i < left; ++i) ++counts[order[i]];
  return counts;
}

/// Domains that are not cut, and how many ranks share them.
struct Group {
  std::vector<Domain> domains;
  int ranks = 0;

  Cores cores() const {
    Cores all;
    for (const Domain& domain : domains) all.insert(all.end(), domain.cores.begin(), domain.cores.end());
    std::sort(all.begin(), all.end());
    return all;
  }
};

/// Each domain with its ranks, or, if there are more domains than ranks, each rank with its domains.
std::vector<Group> grouped(const std::vector<Domain>& domains, int ranks) {
  const int count = static_cast<int>(domains.size());
  std::vector<Group> groups;
  if (ranks < count) {
    for (int rank = 0; rank < ranks; ++rank)
      groups.push_back({take(domains, share_of(count, rank, ranks)), 1});
  } else {
    const std::vector<int> counts = ranks_of(domains, ranks);
    for (int i = 0; i < count; ++i) groups.push_back({{domains[i]}, counts[i]});
  }
  return groups;
}

class Splitter {
 public:
  Splitter(const Topology& topology, int cores_per_rank)
      : topology_(topology), cores_per_rank_(cores_per_rank) {}

  std::vector<AssignedRank> split(const Cores& cores, int ranks) {
    divide(cores, ranks, 0, "the node");
    return std::move(done_);
  }

 private:
  void add(Cores cores, std::string why) {
    AssignedRank& rank = done_.emplace_back();
    rank.cores = std::move(cores);
    rank.why = std::move(why);
  }

  /// Appends the ranks. level: of kKinds. name: of what the cores are.
  void divide(const Cores& cores, int ranks, std::size_t level, const std::string& name) {
    if (ranks == 0) return;
    if (ranks == 1) return add(cores, "has " + name);
    if (level == kKinds.size()) return divide_cores(cores, ranks, name);
    const std::vector<Domain> domains = domains_among(topology_, cores, kKinds[level]);
    if (domains.size() < 2)
      return divide(cores, ranks, level + 1, domains.empty() ? name : domains.front().name);
    const std::vector<Group> groups = grouped(domains, ranks);
    if (!is_fair(groups, cores, ranks, kKinds[level])) return divide(cores, ranks, level + 1, name);
    for (const Group& group : groups) {
      const std::string& first = group.domains.front().name;
      divide(group.cores(), group.ranks, level + 1,
             group.domains.size() == 1 ? first : first + " to " + group.domains.back().name);
    }
  }

  void divide_cores(const Cores& cores, int ranks, const std::string& name) {
    int part = 0;
    for (Cores& own : parts_of(topology_, cores, ranks)) {
      ++part;
      const int first = topology_.cores[own.front()].cpus.first();
      add(own, own.size() == 1 ? fmt::format("has the core of CPU {}", first)
                               : fmt::format("has part {} of {} of {}", part, ranks, name));
    }
  }

  /// Whether each rank gets its share although no domain is cut: as many cores as it would of all cores, or, where
  /// memory is at stake, nearly; and of each kind of cores as many as the others.
  bool is_fair(const std::vector<Group>& groups, const Cores& cores, int ranks, BindTo kind) const {
    const auto total = std::ssize(cores);
    for (const Group& group : groups) {
      if (group.ranks == 0 && cores_per_rank_ == 0) return false;
      if (group.ranks == 0) continue;
      const Cores own = group.cores();
      const auto share = std::ssize(own) / group.ranks;
      const bool is_nearly_even = kind != BindTo::kL3 && share * ranks * 10 >= total * 9;
      if (cores_per_rank_ > 0 ? share < cores_per_rank_ : share < total / ranks && !is_nearly_even)
        return false;
      const std::vector<int> all = kind_counts(topology_, cores), here = kind_counts(topology_, own);
      for (std::size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
        if (here[i] * ranks != all[i] * group.ranks) return false;
      }
    }
    return true;
  }

  const Topology& topology_;
  int cores_per_rank_;
  std::vector<AssignedRank> done_;
};

/// Positions of the domains that a rank has cores of.
std::vector<int> places_of(const Topology& topology, const Cores& cores, BindTo kind) {
  std::vector<int> places;
  for (const int core : cores)
    places.push_back(kind == BindTo::kSocket ? topology.cores[core].package : topology.cores[core].numa);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

/// A warning if ranks lie on several domains of the kind that other ranks have a part of; else "".
std::string cut_warning(const Assignment& assignment, const Topology& topology, const UsableCores& usable,
                        BindTo kind) {
  std::map<int, int> ranks_at;
  for (const AssignedRank& rank : assignment.ranks) {
    for (const int place : places_of(topology, rank.cores, kind)) ++ranks_at[place];
  }
  std::vector<int> cut;
  for (int rank = 0; rank < std::ssize(assignment.ranks); ++rank) {
    const std::vector<int> places = places_of(topology, assignment.ranks[rank].cores, kind);
    const bool shares =
        std::any_of(places.begin(), places.end(), [&](int place) { return ranks_at[place] > 1; });
    if (places.size() > 1 && shares) cut.push_back(rank);
  }
  if (cut.empty()) return "";
  const std::vector<Domain> domains = domains_of(topology, usable, kind);
  const int ranks = static_cast<int>(assignment.ranks.size()), count = static_cast<int>(domains.size());
  const char* const noun = kind == BindTo::kSocket ? "package" : "NUMA node";
  std::string text =
      fmt::format("{} {} {} on several {}s, because {} cannot share {} evenly",
                  cut.size() == 1 ? "local rank" : "local ranks", list_of_numbers(cut),
                  cut.size() == 1 ? "lies" : "lie", noun, counted(ranks, "rank"), counted(count, noun));
  // So many cores that each domain has enough for its ranks.
  const auto smallest =
      std::min_element(domains.begin(), domains.end(),
                       [](const Domain& a, const Domain& b) { return a.cores.size() < b.cores.size(); });
  const auto fitting = std::ssize(smallest->cores) / ((ranks + count - 1) / count);
  if (fitting > 0) text += fmt::format("; --cores-per-rank {} keeps each on one {}", fitting, noun);
  return text;
}

}  // namespace

std::vector<int> in_domain_order(const Topology& topology, const std::vector<int>& cores) {
  Cores row = cores;
  // Stable, and the narrowest kind first: domains keep the order of their first cores.
  for (const BindTo kind : {BindTo::kL3, BindTo::kNuma, BindTo::kSocket}) {
    std::map<int, std::size_t> place;
    const std::vector<Domain> domains = domains_among(topology, cores, kind);
    for (std::size_t i = 0; i < domains.size(); ++i) {
      for (const int core : domains[i].cores) place[core] = i;
    }
    if (domains.empty()) continue;
    std::stable_sort(row.begin(), row.end(), [&](int a, int b) { return place[a] < place[b]; });
  }
  return row;
}

std::vector<std::vector<int>> parts_of(const Topology& topology, const std::vector<int>& cores, int parts) {
  std::vector<Cores> rows{in_domain_order(topology, cores)};
  const std::vector<int> counts = kind_counts(topology, cores);
  const bool each_gets_all =
      std::all_of(counts.begin(), counts.end(), [&](int count) { return count == 0 || count >= parts; });
  if (each_gets_all && counts.size() > 1) {
    const Cores row = std::move(rows.front());
    rows.assign(counts.size(), {});
    for (const int core : row) rows[topology.cores[core].kind].push_back(core);
  }
  std::vector<Cores> result(parts);
  for (int part = 0; part < parts; ++part) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      // Of every second kind the last parts get what is left over, so that the sums differ less.
      const int count = static_cast<int>(rows[i].size());
      Share share = share_of(count, part, parts);
      if (i % 2 == 1) {
        const Share mirrored = share_of(count, parts - 1 - part, parts);
        share = {count - mirrored.first - mirrored.count, mirrored.count};
      }
      const Cores own = take(rows[i], share);
      result[part].insert(result[part].end(), own.begin(), own.end());
    }
    std::sort(result[part].begin(), result[part].end());
  }
  return result;
}

Assignment split_evenly(const Topology& topology, const UsableCores& usable, int cores_per_rank, int ranks) {
  Assignment assignment;
  assignment.ranks = Splitter(topology, cores_per_rank).split(usable.cores, ranks);
  return assignment;
}

void warn_of_cuts(Assignment& assignment, const Topology& topology, const UsableCores& usable) {
  for (const BindTo kind : {BindTo::kSocket, BindTo::kNuma}) {
    const std::string warning = cut_warning(assignment, topology, usable, kind);
    if (warning.empty()) continue;
    assignment.warnings.push_back(warning);
    return;
  }
}

void warn_of_differences(Assignment& assignment, const Topology& topology) {
  std::size_t least = 0, most = 0, total = 0;
  const std::vector<AssignedRank>& ranks = assignment.ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    total += ranks[rank].cores.size();
    if (ranks[rank].cores.size() < ranks[least].cores.size()) least = rank;
    if (ranks[rank].cores.size() > ranks[most].cores.size()) most = rank;
  }
  if (ranks.empty()) return;
  const std::size_t few = ranks[least].cores.size(), many = ranks[most].cores.size();
  // Nothing is said where the smallest share could not be larger.
  if (few < total / ranks.size() && few * 5 < many * 4)
    assignment.warnings.push_back(fmt::format("local rank {} has {} and local rank {} has {}", least,
                                              counted(few, "core"), most, counted(many, "core")));
  const auto kinds_text = [&](std::size_t rank) {
    const std::vector<int> counts = kind_counts(topology, ranks[rank].cores);
    std::vector<std::string> parts;
    for (std::size_t kind = 0; kind < counts.size(); ++kind) {
      if (counts[kind] > 0)
        parts.push_back(fmt::format("{} {}", counts[kind], topology.core_kinds[kind].name));
    }
    return join(parts, " and ");
  };
  for (std::size_t rank = 1; topology.core_kinds.size() > 1 && rank < ranks.size(); ++rank) {
    if (kind_counts(topology, ranks[rank].cores) == kind_counts(topology, ranks.front().cores)) continue;
    assignment.warnings.push_back(
        fmt::format("cores of ranks are of different kinds: local rank 0 has {}, local rank {} has {}",
                    kinds_text(0), rank, kinds_text(rank)));
    return;
  }
}

}  // namespace ddl::affinity
