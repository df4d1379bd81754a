#include "runtime/support/conformance/communicator.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// Which ranks are on which host, from the local and cross ranks that every rank reports.
Groups groups_of(ddl_context* context) {
  const int size = ddl_size(context);
  const std::int32_t own[] = {ddl_local_rank(context), ddl_local_size(context), ddl_cross_rank(context),
                              ddl_cross_size(context)};
  constexpr std::size_t kFields = std::size(own);
  std::vector<std::int32_t> all(kFields * static_cast<std::size_t>(size));
  expect_ok(ddl_allgather(context, own, all.data(), kFields, DDL_INT32, nullptr), "gathering the layout");
  const auto field = [&](int rank, std::size_t which) {
    return all[static_cast<std::size_t>(rank) * kFields + which];
  };
  Groups groups;
  std::vector<std::int32_t> sizes;
  for (int rank = 0; rank < size; ++rank) {
    if (field(rank, 0) != 0) continue;
    groups.push_back({rank});
    sizes.push_back(field(rank, 1));
  }
  for (int rank = 0; rank < size; ++rank) {
    const std::int32_t local_rank = field(rank, 0);
    if (local_rank == 0) continue;
    // The cross rank counts the hosts that have this local rank.
    std::int32_t cross_rank = field(rank, 2);
    std::size_t host = 0;
    while (host < groups.size() && (sizes[host] <= local_rank || cross_rank-- > 0)) ++host;
    expect(host < groups.size(), "the cross rank names no host");
    groups[host].push_back(rank);
  }
  for (std::size_t host = 0; host < groups.size(); ++host) {
    expect(groups[host].size() == static_cast<std::size_t>(sizes[host]), "a local size is wrong");
    expect(std::is_sorted(groups[host].begin(), groups[host].end()), "local ranks are not in rank order");
    for (const int rank : groups[host]) {
      const auto with_it = std::count_if(
          sizes.begin(), sizes.end(), [&](std::int32_t local_size) { return local_size > field(rank, 0); });
      expect(with_it == field(rank, 3), "a cross size is wrong");
    }
  }
  return groups;
}

}  // namespace

ddl_call_options Communicator::options() const {
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = set;
  return options;
}

Communicator world_of(ddl_context* context) {
  Communicator world;
  world.context = context;
  world.rank = ddl_rank(context);
  world.size = ddl_size(context);
  world.ranks.resize(static_cast<std::size_t>(world.size));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  world.groups = groups_of(context);
  return world;
}

Communicator communicator_of(const Communicator& world, std::uint64_t set) {
  Communicator comm;
  comm.context = world.context;
  comm.set = set;
  comm.rank = ddl_process_set_rank(world.context, set);
  comm.size = ddl_process_set_size(world.context, set);
  expect(comm.size > 0, "a process set has no size");
  comm.ranks.resize(static_cast<std::size_t>(comm.size));
  expect_ok(ddl_process_set_ranks(world.context, set, comm.ranks.data()), "ddl_process_set_ranks");
  expect(comm.rank >= 0 && comm.rank < comm.size &&
             comm.ranks[static_cast<std::size_t>(comm.rank)] == world.rank,
         "the rank in a process set is wrong");
  for (const std::vector<int>& host : world.groups) {
    std::vector<int> members;
    for (int rank = 0; rank < comm.size; ++rank) {
      if (std::find(host.begin(), host.end(), comm.ranks[static_cast<std::size_t>(rank)]) != host.end()) {
        members.push_back(rank);
      }
    }
    if (!members.empty()) comm.groups.push_back(members);
  }
  std::sort(comm.groups.begin(), comm.groups.end());  // by the lowest rank
  return comm;
}

}  // namespace ddl::conformance
