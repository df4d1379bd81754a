// The groups in which the ranks of a host synchronize, planned from the locations of their CPUs.
#include "runtime/src/shm/exchange_groups.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::runtime;

namespace {

constexpr ExchangeConfig kGroups{ExchangeConfig::Mode::kGroups, 0};

std::vector<CpuPlace> in_caches(const std::vector<int>& caches) {
  std::vector<CpuPlace> places;
  for (const int cache : caches) places.push_back({cache, 0, 0});
  return places;
}

std::vector<int> plan(const std::vector<CpuPlace>& places) {
  return plan_groups(kGroups, static_cast<int>(places.size()), 1, places);
}

/// A leader is the first of its group and leads itself.
void check_leaders(const std::vector<int>& leader_of) {
  for (std::size_t i = 0; i < leader_of.size(); ++i) {
    CHECK(leader_of[i] <= static_cast<int>(i));
    CHECK(leader_of[static_cast<std::size_t>(leader_of[i])] == leader_of[i]);
  }
}

}  // namespace

TEST_CASE("ranks that share a cache make a group") {
  CHECK(plan(in_caches({0, 0, 0, 8, 8, 8, 16, 16, 16})) == std::vector{0, 0, 0, 3, 3, 3, 6, 6, 6});
}

TEST_CASE("ranks that are assigned in turn are grouped by their location") {
  CHECK(plan(in_caches({0, 8, 16, 0, 8, 16, 0, 8, 16})) == std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("a rank that is alone with its cache is grouped within its node, then its package, then anywhere") {
  const std::vector<CpuPlace> places{{0, 0, 0},  {1, 0, 0},   {2, 2, 0},    {3, 3, 0},
                                     {4, 4, 4},  {5, 5, 5},   {6, 6, 6},    {6, 6, 6},
                                     {-1, 6, 6}, {-1, -1, 4}, {-1, -1, -1}, {-1, -1, -1}};
  //  0 and 1 share a node, 2 and 3 a package, 4 and 9 another, 6 and 7 a cache; the others are left.
  CHECK(plan(places) == std::vector{0, 0, 2, 2, 4, 5, 6, 6, 5, 4, 5, 5});
}

TEST_CASE(
    "if all ranks share a cache, or locations are unknown, a group is consecutive and of about the square "
    "root") {
  for (const auto& places : {std::vector<CpuPlace>(9), in_caches(std::vector<int>(9, 3)),
                             in_caches({0, 1, 2, 3, 4, 5, 6, 7, 8})}) {
    CHECK(plan(places) == std::vector{0, 0, 0, 3, 3, 3, 6, 6, 6});
  }
  CHECK(plan_groups(kGroups, 9, 1, {}) == std::vector{0, 0, 0, 3, 3, 3, 6, 6, 6});
  CHECK(plan_groups(kGroups, 5, 1, {}) == std::vector{0, 0, 0, 3, 3});
}

TEST_CASE("a given width is used, and no group is larger") {
  CHECK(plan_groups({ExchangeConfig::Mode::kGroups, 2}, 5, 1, {}) == std::vector{0, 0, 2, 2, 4});
  CHECK(plan_groups({ExchangeConfig::Mode::kGroups, 8}, 5, 1, {}) == std::vector{0, 0, 0, 0, 0});
  for (const int width : {2, 3, 5, 8, 16}) {
    for (const int members : {1, 2, 3, 17, 64, 1024}) {
      const auto leader_of = plan_groups({ExchangeConfig::Mode::kGroups, width}, members, 1, {});
      check_leaders(leader_of);
      std::map<int, int> sizes;
      for (const int leader : leader_of) ++sizes[leader];
      CHECK(sizes.size() == static_cast<std::size_t>((members + width - 1) / width));
      for (const auto& [leader, size] : sizes) CHECK(size <= width);
    }
  }
}

TEST_CASE("with few ranks, or if the user asks for it, all wait for all") {
  const std::vector<int> flat{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(plan_groups({ExchangeConfig::Mode::kFlat, 0}, 8, 8, in_caches({0, 0, 0, 0, 1, 1, 1, 1})) == flat);
  CHECK(plan_groups({}, 8, 8, in_caches({0, 0, 0, 0, 1, 1, 1, 1})) == flat);
  CHECK(plan_groups(kGroups, 3, 3, {}) == std::vector{0, 1, 2});
  CHECK_FALSE(ExchangeRole::of(flat, 3).in_groups);
  CHECK_FALSE(asks_for_places({}, kGroupsFrom - 1, kGroupsFrom));
  CHECK(asks_for_places({}, kGroupsFrom, kGroupsFrom));
  CHECK_FALSE(asks_for_places({ExchangeConfig::Mode::kGroups, 8}, 64, 64));
}

TEST_CASE("many ranks synchronize in groups if there is a CPU for each") {
  const auto is_in_groups = [](int ranks, int cpus) {
    return ExchangeRole::of(plan_groups({}, ranks, cpus, {}), 0).in_groups;
  };
  CHECK(is_in_groups(kGroupsFrom, kGroupsFrom));
  CHECK(is_in_groups(kGroupsFrom, 2 * kGroupsFrom));
  CHECK_FALSE(is_in_groups(kGroupsFrom, kGroupsFrom - 1));
  CHECK_FALSE(is_in_groups(kGroupsFrom - 1, 2 * kGroupsFrom));
}

TEST_CASE("every member of any plan has one leader, and leaders know each other and theirs") {
  const int members = GENERATE(4, 5, 9, 17, 64, 130);
  std::vector<CpuPlace> places;
  for (int i = 0; i < members; ++i) places.push_back({i * 7 % 5, i % 3 - 1, i % 2 - 1});
  const auto leader_of = plan(places);
  check_leaders(leader_of);
  const std::set<int> leaders(leader_of.begin(), leader_of.end());
  std::size_t followers = 0;
  for (int i = 0; i < members; ++i) {
    const ExchangeRole role = ExchangeRole::of(leader_of, i);
    CHECK(role.in_groups);
    CHECK(role.other_leaders.size() == (role.leader == i ? leaders.size() - 1 : 0));
    followers += role.followers.size();
  }
  CHECK(followers + leaders.size() == static_cast<std::size_t>(members));
}

TEST_CASE("the user's choice is flat, groups or a number") {
  CHECK(ExchangeConfig::parse("flat")->mode == ExchangeConfig::Mode::kFlat);
  CHECK(ExchangeConfig::parse("groups")->width == 0);
  CHECK(ExchangeConfig::parse("1024")->width == 1024);
  for (const char* text : {"", "auto", "1", "0", "-8", "1025", "8 ", "groups:8"}) {
    CAPTURE(text);
    CHECK_FALSE(ExchangeConfig::parse(text));
  }
}

TEST_CASE("a rank's location contains all of its CPUs") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("ddl-cpus-" + std::to_string(::getpid()));
  const auto write = [&](const fs::path& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  };
  // Two packages of four CPUs; a node and two caches in the first, and no information for CPU 6.
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "cpu/cpu" + std::to_string(cpu);
    write(folder + "/topology/package_cpus_list", cpu < 4 ? "0-3" : "4-7");
    if (cpu < 4) write(folder + "/cache/index3/shared_cpu_list", cpu < 2 ? "0-1" : "2-3");
    if (cpu == 4 || cpu == 5) write(folder + "/cache/index3/shared_cpu_list", "4-5");
  }
  write("node/node0/cpulist", "0-3");
  write("node/possible", "0-1");
  const CpuPlaces places = CpuPlaces::read(CpuSet::of({0, 1, 2, 3, 4, 5, 6, 7}), root.string());
  const auto where = [&](const std::vector<int>& cpus) {
    const CpuPlace place = places.of(CpuSet::of(cpus));
    return std::vector{place.cache, place.node, place.package};
  };
  CHECK(where({1}) == std::vector{0, 0, 0});
  CHECK(where({2, 3}) == std::vector{2, 0, 0});
  CHECK(where({1, 2}) == std::vector{-1, 0, 0});
  CHECK(where({4, 5}) == std::vector{4, -1, 4});
  CHECK(where({6}) == std::vector{-1, -1, 4});
  CHECK(where({0, 7}) == std::vector{-1, -1, -1});
  CHECK(where({}) == std::vector{-1, -1, -1});
  CHECK(where({700}) == std::vector{-1, -1, -1});
  fs::remove_all(root);
  CHECK(CpuPlaces::read(CpuSet::of({0}), root.string()).of(CpuSet::of({0})).package == -1);
}
