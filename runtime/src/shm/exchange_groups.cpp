#include "runtime/src/shm/exchange_groups.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::runtime {
namespace {

/// With fewer members groups save no waiting.
constexpr int kMinInGroups = 4;

constexpr std::array kLevels{&CpuPlace::cache, &CpuPlace::node, &CpuPlace::package};

int square_root_up(int number) {
  int root = 1;
  while (root * root < number) ++root;
  return root;
}

/// Cuts a group into the fewest parts of at most width members, as equal as possible, and sets the leader of each.
void lead(const std::vector<int>& group, int width, std::vector<int>& leader_of) {
  const int size = std::ssize(group);
  const int parts = (size + width - 1) / width;
  for (int i = 0; i < size; ++i) {
    const int part = static_cast<int>((static_cast<long>(i) * parts) / size);
    // The first of a part is where the part's number changes.
    const int first = static_cast<int>((static_cast<long>(part) * size + parts - 1) / parts);
    leader_of[group[i]] = group[first];
  }
}

bool is_flat(const ExchangeConfig& config, int members, int cpus) {
  switch (config.mode) {
    case ExchangeConfig::Mode::kFlat: return true;
    // If ranks share a CPU, each wait for a leader costs another time slice.
    case ExchangeConfig::Mode::kAuto: return members < kGroupsFrom || members > cpus;
    case ExchangeConfig::Mode::kGroups: return config.width == 0 && members < kMinInGroups;
  }
  return true;
}

}  // namespace

bool asks_for_places(const ExchangeConfig& config, int members, int cpus) {
  return !is_flat(config, members, cpus) && config.width == 0;
}

std::vector<int> plan_groups(const ExchangeConfig& config, int members, int cpus,
                             std::span<const CpuPlace> place_of) {
  std::vector<int> leader_of(static_cast<std::size_t>(members));
  std::iota(leader_of.begin(), leader_of.end(), 0);
  if (is_flat(config, members, cpus)) return leader_of;
  std::vector<int> left = leader_of;
  if (config.width > 0) {
    lead(left, config.width, leader_of);
    return leader_of;
  }
  const int width = square_root_up(members);
  for (const auto level : kLevels) {
    std::map<int, std::vector<int>> together;
    std::vector<int> without;
    for (const int member : left) {
      const int number = place_of.empty() ? -1 : place_of[member].*level;
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
  role.leader = leader_of[index];
  for (int i = 0; i < std::ssize(leader_of); ++i) {
    const int leader = leader_of[i];
    if (leader != i) role.in_groups = true;
    if (role.leader != index || i == index) continue;
    if (leader == index) role.followers.push_back(i);
    if (leader == i) role.other_leaders.push_back(i);
  }
  return role;
}

CpuPlaces CpuPlaces::read(const CpuSet& cpus, const std::string& root) {
  CpuPlaces places;
  for (const int cpu : cpus.cpus()) {
    // A list names all CPUs that share the cache, so most CPUs are known from the list of an earlier one.
    const std::string folder = root + "/cpu/cpu" + std::to_string(cpu);
    if (places.place_of_[cpu].cache < 0)
      places.place(folder + "/cache/index3/shared_cpu_list", &CpuPlace::cache);
    if (places.place_of_[cpu].package < 0)
      places.place(folder + "/topology/package_cpus_list", &CpuPlace::package);
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/node", none))
    places.place(entry.path().string() + "/cpulist", &CpuPlace::node);
  return places;
}

void CpuPlaces::place(const std::string& list_file, int CpuPlace::*level) {
  const auto text = read_file(list_file);
  const Result<CpuSet> cpus = text ? CpuSet::parse_list(*text) : CpuSet();
  if (!cpus) return;
  for (const int cpu : cpus->cpus()) place_of_[cpu].*level = cpus->first();
}

CpuPlace CpuPlaces::of(const CpuSet& cpus) const {
  CpuPlace common;
  for (const int cpu : cpus.cpus()) {
    const auto found = place_of_.find(cpu);
    const CpuPlace place = found == place_of_.end() ? CpuPlace() : found->second;
    for (const auto level : kLevels) {
      if (cpu == cpus.first()) {
        common.*level = place.*level;
      } else if (common.*level != place.*level) {
        common.*level = -1;
      }
    }
  }
  return common;
}

}  // namespace ddl::runtime
