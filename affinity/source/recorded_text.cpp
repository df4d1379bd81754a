// Reads a topology from the recorded output of lscpu, and of rocm-smi, amd-smi or nvidia-smi. topology_source.h
// declares the function.
#include <algorithm>
#include <map>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "affinity/source/recorded_gpus.h"
#include "affinity/source/topology_source.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

constexpr std::size_t kMaxLineBytes = 4096;

using Ranges = std::vector<CpuSet>;  ///< as they are written, one after the other

struct Found {
  std::map<int, Ranges> numa;  ///< by number
  Ranges online;               ///< all CPUs, if lscpu says so
  std::optional<int> threads;  ///< of a core, if lscpu says so
  bool is_adjacent = false;    ///< threads of a core are neighbours on this architecture
  bool is_foreign = false;     ///< lines of lscpu in another language
  std::map<std::pair<GpuVendor, int>, RecordedGpu> gpus;
};

/// Without the sequences that underline and colour words on a terminal; copied by hand they may lack the escape
/// character, or have "^[" for it.
std::string without_escapes(std::string_view line) {
  static const std::regex kSequence("(\x1b|\\^\\[)?\\[[0-9;]*m");
  return std::regex_replace(std::string(line), kSequence, "");
}

Result<Ranges> ranges_of(const std::string& list) {
  Ranges ranges;
  for (const std::string_view range : split(list, ',')) {
    if (range.empty()) continue;
    DDL_ASSIGN(cpus, CpuSet::parse_list(range));
    ranges.push_back(std::move(cpus));
  }
  return ranges;
}

/// A NUMA node's CPUs in other words than English ones, as in "NUMA-Knoten0 CPU(s): 0-15".
bool is_foreign_list(std::string_view line) {
  line = trim(line);
  const std::size_t numa = line.find("NUMA"), last = line.find_last_not_of("0123456789,-");
  if (numa == std::string_view::npos || last < numa || last + 1 >= line.size()) return false;
  const std::string_view list = line.substr(last + 1);
  return list.find_first_of(",-") != std::string_view::npos && CpuSet::parse_list(list).has_value();
}

Status read_lscpu(const std::string& line, Found& found) {
  static const std::regex kNode(R"(NUMA node(\d{1,4}) CPU\(s\):\s*([0-9,\-]*)\s*$)");
  static const std::regex kOnline(R"(On-line CPU\(s\) list:\s*([0-9,\-]+)\s*$)");
  static const std::regex kThreads(R"(Thread\(s\) per core:\s*(\d{1,2})\s*$)");
  static const std::regex kArchitecture(R"(Architecture:\s*(ppc|s390))");
  std::smatch parts;
  if (std::regex_search(line, parts, kNode) || std::regex_search(line, parts, kOnline)) {
    const bool is_node = parts.size() == 3;
    auto ranges = ranges_of(parts[is_node ? 2 : 1]);
    if (!ranges) return fail(std::move(ranges.error()).during("\"" + line + "\""));
    (is_node ? found.numa[std::stoi(parts[1])] : found.online) = *std::move(ranges);
  } else if (std::regex_search(line, parts, kThreads)) {
    found.threads = std::max(1, std::stoi(parts[1]));
  } else if (std::regex_search(line, kArchitecture)) {
    found.is_adjacent = true;
  } else if (is_foreign_list(line)) {
    found.is_foreign = true;
  }
  return {};
}

Result<Found> read_lines(std::string_view text) {
  Found found;
  RecordedGpus gpus;
  for (const std::string_view part : split(text, '\n')) {
    if (part.size() > kMaxLineBytes) continue;
    const std::string line = without_escapes(part);
    DDL_TRY(read_lscpu(line, found));
    DDL_TRY(gpus.read(line));
  }
  found.gpus = std::move(gpus).take();
  return found;
}

/// The NUMA nodes of a text without lscpu, as far as GPUs are near them.
void add_nodes_of_gpus(Found& found) {
  std::map<std::string, int> known;  // by CPUs
  for (const auto& [index, gpu] : found.gpus) {
    if (gpu.cpus.is_empty() || known.contains(gpu.cpus.list())) continue;
    int number = gpu.numa.value_or(0);
    // A number that is not known, or that other CPUs have, is replaced.
    while (number < 0 || found.numa.contains(number)) ++number;
    auto ranges = ranges_of(gpu.cpus.list());
    if (!ranges) continue;  // it is a list
    found.numa[number] = *std::move(ranges);
    known[gpu.cpus.list()] = number;
  }
}

/// The hardware threads of a core: as lscpu says, or else as many as there are ranges of the same length, as in
/// 0-15,64-79. CPUs that are numbered in the nodes in turn (0,2,4) are no such ranges.
int threads_of(const Ranges& ranges, const Found& found) {
  if (found.threads) return *found.threads;
  const bool is_smt = (ranges.size() == 2 || ranges.size() == 4) && ranges.front().count() > 1 &&
                      std::all_of(ranges.begin(), ranges.end(), [&](const CpuSet& range) {
                        return range.count() == ranges.front().count();
                      });
  return is_smt ? static_cast<int>(ranges.size()) : 1;
}

/// The cores of a NUMA node with these CPUs. Linux counts the first threads of all cores, and then the second ones;
/// only where that cannot be are the threads of a core neighbours.
std::vector<CpuSet> cores_of(const std::vector<int>& cpus, int threads, bool is_adjacent) {
  std::vector<CpuSet> cores;
  const std::size_t per_core = cpus.size() % threads == 0 ? threads : 1, count = cpus.size() / per_core;
  for (std::size_t core = 0; core < count; ++core) {
    CpuSet& own = cores.emplace_back();
    for (std::size_t thread = 0; thread < per_core; ++thread)
      own.add(cpus[is_adjacent ? core * per_core + thread : core + thread * count]);
  }
  return cores;
}

Status add_cpus(Topology& topology, const Found& found) {
  bool is_guessed = false;
  for (const auto& [number, ranges] : found.numa) {
    CpuSet all;
    for (const CpuSet& range : ranges) {
      if (const CpuSet twice = range & (all | topology.complete); !twice.is_empty()) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("CPU {} of NUMA node {} is named twice", twice.first(), number));
      }
      all |= range;
    }
    const int index = topology.numa_nodes.size();
    topology.numa_nodes.push_back({number, all, all, 0});
    topology.complete |= all;
    const int threads = threads_of(ranges, found);
    is_guessed = is_guessed || (threads == 1 && !found.threads);
    const bool is_adjacent = ranges.size() == 1 && (found.is_adjacent || found.numa.size() > 1);
    for (const CpuSet& cpus : cores_of(all.cpus(), threads, is_adjacent))
      topology.cores.push_back({cpus, 0, index, -1});
  }
  topology.allowed = topology.complete;
  topology.packages.push_back({0, topology.complete, topology.complete});
  sort_by_first_cpu(topology.cores);
  if (is_guessed)
    topology.warnings.push_back(topology.source +
                                ": does not say how many threads a core has, so each CPU counts as a core; "
                                "lscpu's line \"Thread(s) per core\" says it");
  return {};
}

void add_gpus(Topology& topology, const Found& found) {
  bool lacks_places = false;
  for (const auto& [key, recorded] : found.gpus) {
    Gpu gpu;
    gpu.vendor = key.first;
    gpu.index = key.second;
    gpu.bus_id = recorded.bus_id;
    gpu.locality_from = recorded.from;
    gpu.complete_local_cpus = recorded.cpus;
    for (int node = 0; node < std::ssize(topology.numa_nodes); ++node) {
      const NumaNode& one = topology.numa_nodes[node];
      const bool is_inside = !recorded.cpus.is_empty() && recorded.cpus.is_subset_of(one.complete);
      if (recorded.numa ? one.os_index != *recorded.numa : !is_inside) continue;
      gpu.numa = node;
      if (recorded.cpus.is_empty()) gpu.complete_local_cpus = one.complete;
    }
    gpu.local_cpus = gpu.complete_local_cpus & topology.allowed;
    lacks_places = lacks_places || recorded.from == "amd-smi topology";
    topology.gpus.push_back(std::move(gpu));
  }
  if (lacks_places)
    topology.warnings.push_back(
        topology.source +
        ": `amd-smi topology` does not say which CPUs a GPU is near; add the output of "
        "`amd-smi static --numa`");
}

Error no_cpus(const Found& found, const std::string& source) {
  std::string text = source + ": has no line such as \"NUMA node0 CPU(s): 0-15,64-79\"; ";
  text += found.is_foreign ? "lscpu speaks another language there: run `LC_ALL=C lscpu`"
                           : "add the output of `LC_ALL=C lscpu`";
  return Error(ErrorCode::kInvalidArgument, text);
}

}  // namespace

Result<Topology> topology_of_text(std::string_view text, const std::string& source) {
  auto found = read_lines(text);
  if (!found) return fail(std::move(found.error()).during(source));
  if (found->numa.empty() && found->is_foreign) return fail(no_cpus(*found, source));
  // A kernel without NUMA: all CPUs are one node.
  if (found->numa.empty() && !found->online.empty()) found->numa[0] = found->online;
  const bool has_lscpu = !found->numa.empty();
  if (!has_lscpu) add_nodes_of_gpus(*found);
  if (found->numa.empty()) return fail(no_cpus(*found, source));
  Topology topology;
  topology.source = source;
  if (auto added = add_cpus(topology, *found); !added) return fail(std::move(added.error()).during(source));
  add_gpus(topology, *found);
  if (!has_lscpu)
    topology.warnings.push_back(source +
                                ": has only the CPUs near GPUs; with the output of lscpu all are known");
  topology.warnings.push_back(source +
                              ": has neither packages nor caches, so cores are split by NUMA node alone");
  return topology;
}

}  // namespace ddl::affinity
