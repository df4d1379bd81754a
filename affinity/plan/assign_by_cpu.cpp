// Assigns ranks to cores by domain: package, NUMA node, L3 cache, core or hardware thread.
#include <algorithm>

#include <fmt/format.h>

#include "affinity/plan/rank_assignment.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

std::vector<int> cores_of(const std::vector<Domain>& domains) {
  std::vector<int> cores;
  for (const Domain& domain : domains) cores.insert(cores.end(), domain.cores.begin(), domain.cores.end());
  std::sort(cores.begin(), cores.end());
  return cores;
}

std::string names_of(const std::vector<Domain>& domains) {
  if (domains.size() == 1) return domains.front().name;
  return fmt::format("{} to {}", domains.front().name, domains.back().name);
}

tl::unexpected<Error> too_few(int ranks, int cores) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{} for {}; --oversubscribe lets them share", counted(cores, "usable core"),
                          counted(ranks, "rank")));
}

/// More ranks than cores.
Assignment wrapped(const std::vector<int>& cores, int ranks) {
  Assignment assignment;
  const int count = cores.size();
  for (int rank = 0; rank < ranks; ++rank) {
    AssignedRank& own = assignment.ranks.emplace_back();
    own.cores = {cores[static_cast<long long>(rank) * count / ranks]};
    own.why = "ranks share cores";
  }
  assignment.warnings.push_back(fmt::format("{} share {}", counted(ranks, "rank"), counted(count, "core")));
  return assignment;
}

/// More ranks than cores, and at least as many hardware threads: neighbours share a core, but no hardware thread.
Assignment shared_by_thread(const Topology& topology, const UsableCores& usable, int ranks) {
  const std::vector<Pu> pus = pus_of(topology, usable);
  Assignment assignment;
  for (int rank = 0; rank < ranks; ++rank) {
    AssignedRank& own = assignment.ranks.emplace_back();
    for (const Pu& pu : take(pus, share_of(pus.size(), rank, ranks))) {
      if (own.cores.empty() || own.cores.back() != pu.core) own.cores.push_back(pu.core);
      own.cpus.add(pu.cpu);
    }
    own.why = "there are more ranks than cores, so it has hardware threads of its own";
  }
  return assignment;
}

/// Splits the domains evenly among the ranks, or the ranks evenly among the domains.
Assignment shared_out(const std::vector<Domain>& domains, int ranks) {
  const int count = domains.size();
  Assignment assignment;
  if (count == 0) return assignment;  // without a usable core there are no ranks
  for (int rank = 0; rank < ranks; ++rank) {
    AssignedRank& own = assignment.ranks.emplace_back();
    if (ranks <= count) {
      const auto mine = take(domains, share_of(count, rank, ranks));
      own.cores = cores_of(mine);
      own.why = "has " + names_of(mine);
      continue;
    }
    // Find the rank's domain, and its position among the domain's ranks.
    int domain = 0;
    while (domain + 1 < count &&
           share_of(ranks, domain, count).first + share_of(ranks, domain, count).count <= rank)
      ++domain;
    const Share here = share_of(ranks, domain, count);
    const Domain& shared = domains[domain];
    own.cores = take(shared.cores, share_of(shared.cores.size(), rank - here.first, here.count));
    own.why = fmt::format("has part {} of {} of {}", rank - here.first + 1, here.count, shared.name);
  }
  return assignment;
}

}  // namespace

Result<Assignment> assign_by_cpu(const Topology& topology, const BindingPolicy& policy,
                                 const UsableCores& usable, int local_ranks) {
  const BindTo kind = policy.bind_to;
  const bool is_auto = kind == BindTo::kAuto;
  if (kind == BindTo::kL3 && topology.l3s.empty())
    return fail(ErrorCode::kUnavailable, "--bind-to l3: it is unknown which cores of this node share an L3");
  const int cores = usable.cores.size();
  const bool fits_threads = local_ranks <= std::ssize(pus_of(topology, usable));
  if (local_ranks > cores) {
    const bool by_thread = fits_threads && (is_auto || kind == BindTo::kPu || policy.smt);
    if (!by_thread && !policy.oversubscribe) return too_few(local_ranks, cores);
    const std::vector<int> row = in_domain_order(topology, usable.cores);
    Assignment shared =
        by_thread ? shared_by_thread(topology, {row, {}, false}, local_ranks) : wrapped(row, local_ranks);
    DDL_TRY(keep_cores(shared, policy, topology));
    return shared;
  }
  if (is_auto) {
    Assignment assignment = split_evenly(topology, usable, policy.cores_per_rank, local_ranks);
    DDL_TRY(keep_cores(assignment, policy, topology));
    warn_of_cuts(assignment, topology, usable);
    return assignment;
  }
  std::vector<Domain> domains = domains_of(topology, usable, kind);
  if (local_ranks < std::ssize(domains)) {
    // One domain each, as far from each other as possible.
    std::vector<Domain> apart;
    for (int rank = 0; rank < local_ranks; ++rank) {
      const Share share = share_of(domains.size(), rank, local_ranks);
      apart.push_back(domains[share.first]);
      // policy.cores_per_rank cores may need more than one domain.
      for (int next = share.first + 1;
           next < share.first + share.count && std::ssize(apart.back().cores) < policy.cores_per_rank;
           ++next) {
        apart.back().cores.insert(apart.back().cores.end(), domains[next].cores.begin(),
                                  domains[next].cores.end());
        apart.back().name += " and " + domains[next].name;
      }
    }
    domains = std::move(apart);
  }
  Assignment assignment = shared_out(domains, local_ranks);
  // If some cores of a domain are not usable, it may have more ranks than cores.
  for (const AssignedRank& rank : assignment.ranks) {
    if (!rank.cores.empty()) continue;
    domains = domains_of(topology, usable, BindTo::kCore);
    assignment = shared_out(domains, local_ranks);
    assignment.warnings.emplace_back("domains differ in size, so ranks are spread over cores instead");
    break;
  }
  DDL_TRY(keep_cores(assignment, policy, topology));
  return assignment;
}

}  // namespace ddl::affinity
