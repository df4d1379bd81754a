// Who is in a new process set, and where its ranks are: pure functions, alike on all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// What a rank says when a set is split.
struct Coloring {
  std::int32_t color = 0;  ///< negative: into no set
  std::int32_t key = 0;
};

/// The ranks with own's color, by key and then by rank; empty if the color is negative.
std::vector<int> members_of_color(std::span<const Coloring> all, int own);

/// The membership of rank members[i] of the parent, which becomes rank i; members are ranks of the parent, each once.
/// made: how many sets the parent has made before, so that no two memberships of a parent have the same generation.
Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint32_t made);

}  // namespace ddl::runtime
