#include "runtime/src/shm/exchange_groups.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include "base/text.h"

namespace ddl::runtime {
namespace {

/// With fewer members groups save no waiting.
constexpr int kMinInGroups = 4;

int square_root_up(int number) {
  int root = 1;
  while (root * root < number) ++root;
  return root;
}

/// Cuts a group into the fewest parts of at most width members, as equal as possible, and sets the leader of each.
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

bool is_flat(const ExchangeConfig& config, int members, int cpus) {
  switch (config.way) {
    case ExchangeConfig::Way::kFlat: return true;
    // If ranks share a CPU, each wait for a leader costs another time slice.
    case ExchangeConfig::Way::kAuto: return members < kGroupsFrom || members > cpus;
    case ExchangeConfig::Way::kGroups: return config.width == 0 && members < kMinInGroups;
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

CpuSet CpuSet::of_this_thread() {
  CpuSet set;
  // By number: the call itself takes a buffer of any length, glibc's cpu_set_t ends at 1024 CPUs.
  if (::syscall(SYS_sched_getaffinity, 0, sizeof set.bits, set.bits.data()) < 0) set.bits[0] = 1;
  return set;
}

namespace {

constexpr std::array kLevels{&CpuPlace::cache, &CpuPlace::node, &CpuPlace::package};

/// Calls visit(cpu) for each.
template <class Visit>
void for_each_cpu(const CpuSet& cpus, Visit visit) {
  for (std::size_t word = 0; word < cpus.bits.size(); ++word) {
    for (std::uint64_t left = cpus.bits[word]; left != 0; left &= left - 1)
      visit(word * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }
}

std::optional<int> parse_cpu(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(CpuSet::kMaxCpus)) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_cpu(ends.front()), last = parse_cpu(ends.back());
    if (!first || !last || ends.size() > 2 || *first > *last) return {};
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

CpuPlaces CpuPlaces::read(const CpuSet& cpus, const std::string& root) {
  CpuPlaces places;
  places.place_of_.resize(CpuSet::kMaxCpus);
  for_each_cpu(cpus, [&](std::size_t cpu) {
    // A list names all CPUs that share the cache, so most CPUs are known from the list of an earlier one.
    const std::string folder = root + "/cpu/cpu" + std::to_string(cpu);
    if (places.place_of_[cpu].cache < 0)
      places.place(folder + "/cache/index3/shared_cpu_list", &CpuPlace::cache);
    if (places.place_of_[cpu].package < 0)
      places.place(folder + "/topology/package_cpus_list", &CpuPlace::package);
  });
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/node", none))
    places.place(entry.path().string() + "/cpulist", &CpuPlace::node);
  return places;
}

void CpuPlaces::place(const std::string& list_file, int CpuPlace::*level) {
  std::ifstream file(list_file);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<int> cpus = parse_cpu_list(text);
  for (const int cpu : cpus) place_of_[static_cast<std::size_t>(cpu)].*level = cpus.front();
}

CpuPlace CpuPlaces::of(const CpuSet& cpus) const {
  CpuPlace common;
  bool is_first = true;
  for_each_cpu(cpus, [&](std::size_t cpu) {
    for (const auto level : kLevels) {
      const int number = place_of_[cpu].*level;
      common.*level = is_first || common.*level == number ? number : -1;
    }
    is_first = false;
  });
  return common;
}

}  // namespace ddl::runtime
