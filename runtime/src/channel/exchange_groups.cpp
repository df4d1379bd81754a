#include "runtime/src/channel/exchange_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ddl::runtime {
namespace {

/// Below that a group saves nobody anything.
constexpr int kFewestInGroups = 4;

int square_root_up(int number) {
  int root = 1;
  while (root * root < number) ++root;
  return root;
}

/// Cuts a group into as few parts as can be of at most width, as even as can be, and names the leader of each.
void lead(const std::vector<int>& group, int width, std::vector<int>& leader_of) {
  const int size = static_cast<int>(group.size());
  const int parts = (size + width - 1) / width;
  for (int i = 0; i < size; ++i) {
    const int part = static_cast<int>((static_cast<long>(i) * parts) / size);
    // The first of a part is where the part's number changes.
    const int first = static_cast<int>((static_cast<long>(part) * size + parts - 1) / parts);
    leader_of[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])] =
        group[static_cast<std::size_t>(first)];
  }
}

bool is_flat(const ExchangeWish& wish, int members, int cpus) {
  switch (wish.way) {
    case ExchangeWish::Way::kFlat: return true;
    // Where ranks take turns on a CPU, each wait for a leader is a turn more.
    case ExchangeWish::Way::kAuto: return members < kGroupsFrom || members > cpus;
    case ExchangeWish::Way::kGroups: return wish.width == 0 && members < kFewestInGroups;
  }
  return true;
}

}  // namespace

bool asks_for_places(const ExchangeWish& wish, int members, int cpus) {
  return !is_flat(wish, members, cpus) && wish.width == 0;
}

std::vector<int> plan_groups(const ExchangeWish& wish, int members, int cpus,
                             std::span<const CpuPlace> place_of) {
  std::vector<int> leader_of(static_cast<std::size_t>(members));
  std::iota(leader_of.begin(), leader_of.end(), 0);
  if (is_flat(wish, members, cpus)) return leader_of;
  std::vector<int> left = leader_of;
  if (wish.width > 0) {
    lead(left, wish.width, leader_of);
    return leader_of;
  }
  const int width = square_root_up(members);
  for (const auto level : {&CpuPlace::cache, &CpuPlace::node, &CpuPlace::package}) {
    std::map<int, std::vector<int>> together;
    std::vector<int> without;
    for (const int member : left) {
      const int number = place_of.empty() ? -1 : place_of[static_cast<std::size_t>(member)].*level;
      (number < 0 ? without : together[number]).push_back(member);
    }
    for (const auto& [number, group] : together) {
      if (group.size() > 1) {
        lead(group, width, leader_of);
      } else {
        without.push_back(group.front());
      }
    }
    std::sort(without.begin(), without.end());
    left = std::move(without);
  }
  lead(left, width, leader_of);
  return leader_of;
}

ExchangeRole ExchangeRole::of(std::span<const int> leader_of, int index) {
  ExchangeRole role;
  role.index = index;
  role.leader = leader_of[static_cast<std::size_t>(index)];
  for (int i = 0; i < static_cast<int>(leader_of.size()); ++i) {
    const int leader = leader_of[static_cast<std::size_t>(i)];
    if (leader != i) role.in_groups = true;
    if (role.leader != index || i == index) continue;
    if (leader == index) role.followers.push_back(i);
    if (leader == i) role.other_leaders.push_back(i);
  }
  return role;
}

}  // namespace ddl::runtime
