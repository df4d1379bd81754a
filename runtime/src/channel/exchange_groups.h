// In which groups the ranks of one host meet: a plan made once by the rank that makes their segment, and each rank's part
// in it.
#pragma once

#include <span>
#include <vector>

#include "runtime/src/channel/exchange_wish.h"

namespace ddl::runtime {

/// Where all CPUs lie that a rank may run on: the numbers of one last-level cache, one NUMA node and one package. -1: not
/// in one, or not known.
struct CpuPlace {
  int cache = -1;
  int node = -1;
  int package = -1;
};

/// From so many ranks on a host, with a CPU for each, they meet in groups unless the user says otherwise. It lies above all
/// that has been measured: on two cores groups do not win (docs/decisions/0016-ranks-of-a-host-may-meet-in-groups.md).
inline constexpr int kGroupsFrom = 128;

/// Whether the plan depends on where the ranks are, so that it is worth finding out. cpus: that they may run on, all
/// together.
bool asks_for_places(const ExchangeWish& wish, int members, int cpus);

/// For each member the index of the one that leads its group, itself if it leads. Everybody leads itself alone where all
/// wait for all. Ranks with one cache make a group; those that are alone with theirs look for others of their NUMA
/// node, then of their package, then among all that are left. A group has at most about as many members as there
/// are groups, the square root of all: larger ones are cut in the order of ranks. place_of: empty, or one for each member.
std::vector<int> plan_groups(const ExchangeWish& wish, int members, int cpus,
                             std::span<const CpuPlace> place_of);

/// One member's part.
struct ExchangeRole {
  bool in_groups = false;          ///< false: all wait for all, and the rest says nothing
  int index = 0;                   ///< its own
  int leader = 0;                  ///< of its group
  std::vector<int> followers;      ///< of a leader, in its group
  std::vector<int> other_leaders;  ///< of a leader

  static ExchangeRole of(std::span<const int> leader_of, int index);
};

}  // namespace ddl::runtime
