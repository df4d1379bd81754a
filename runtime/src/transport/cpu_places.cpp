#include "runtime/src/transport/cpu_places.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace ddl::runtime {
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
    // A list names all CPUs that share it, so most have been placed by an earlier one.
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
