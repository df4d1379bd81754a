#include "runtime/src/context/set_members.h"

#include <algorithm>
#include <array>

#include "runtime/src/channel/call.h"

namespace ddl::runtime {

std::vector<int> members_of_color(std::span<const Coloring> all, int own) {
  std::vector<int> members;
  const std::int32_t color = all[static_cast<std::size_t>(own)].color;
  if (color < 0) return members;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].color == color) members.push_back(static_cast<int>(rank));
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
  });
  return members;
}

Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint32_t made) {
  const auto rank_of = [&](int parent_rank) {
    return static_cast<int>(std::find(members.begin(), members.end(), parent_rank) - members.begin());
  };
  Membership membership;
  const std::array<std::uint64_t, 3> names{parent.generation, made,
                                           static_cast<std::uint64_t>(members.front())};
  membership.generation = static_cast<std::uint32_t>(digest_of(names));
  membership.rank = rank_of(parent.rank);
  membership.size = static_cast<int>(members.size());
  membership.host = parent.host;
  std::vector<std::vector<int>> groups;
  for (const auto& host : parent.layout.hosts) {
    std::vector<int> group;
    for (const int rank : host) {
      if (const int own = rank_of(rank); own < membership.size) group.push_back(own);
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  auto layout = HostLayout::of(std::move(groups), membership.rank, membership.size);
  DDL_CHECK(layout.has_value(), layout.error().message());
  membership.layout = *std::move(layout);
  return membership;
}

}  // namespace ddl::runtime
