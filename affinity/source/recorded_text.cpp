// Reads a topology from the recorded output of lscpu with rocm-smi or nvidia-smi. topology_source.h declares the
// function.
#include <algorithm>
#include <map>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "affinity/source/topology_source.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

/// More than any machine has: a number with too many digits is a mistake, or an attack.
constexpr std::int64_t kMaxObjects = 4096;
constexpr std::size_t kMaxLineBytes = 4096;

struct Found {
  std::map<int, std::vector<CpuSet>> numa;     ///< by number: its ranges, as they are written
  std::map<int, std::optional<int>> gpu_numa;  ///< by index
  std::map<int, CpuSet> gpu_cpus;              ///< by index, if the text has them
  bool is_nvidia = false;
};

std::optional<int> small_number(const std::string& text) {
  const auto number = parse_integer(text);
  if (!number || *number < -1 || *number >= kMaxObjects) return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(line) + ' ') {
    if (c == ' ' || c == '\t' || c == '\r') {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  return words;
}

Status read_lscpu(const std::string& line, Found& found) {
  static const std::regex kLine(R"(NUMA node(\d{1,4}) CPU\(s\):\s*([0-9,\-]*)\s*$)");
  std::smatch parts;
  if (!std::regex_search(line, parts, kLine)) return {};
  std::vector<CpuSet> ranges;
  const std::string list = parts[2];
  for (const std::string_view range : split(list, ',')) {
    if (range.empty()) continue;
    auto cpus = CpuSet::parse_list(range);
    if (!cpus) return fail(std::move(cpus.error()).during("\"" + line + "\""));
    ranges.push_back(*std::move(cpus));
  }
  found.numa[std::stoi(parts[1])] = std::move(ranges);
  return {};
}

void read_rocm_smi(const std::string& line, Found& found) {
  static const std::regex kLine(R"(GPU\s?\[?(\d{1,4})\]?\s*:\s*\(Topology\)\s*Numa Node:\s*(-?\d{1,4}))");
  std::smatch parts;
  if (!std::regex_search(line, parts, kLine)) return;
  const auto gpu = small_number(parts[1]), node = small_number(parts[2]);
  if (gpu && node) found.gpu_numa[*gpu] = *node;
}

/// The columns behind the matrix are found by the head line, whose names are of two words.
struct NvidiaHead {
  int columns = 0;  ///< of the matrix: GPUs and NICs
  bool has_cpus = false;
  bool has_numa = false;
};

std::optional<NvidiaHead> nvidia_head(const std::string& line) {
  if (line.find("CPU Affinity") == std::string::npos || line.find("GPU0") == std::string::npos)
    return std::nullopt;
  NvidiaHead head;
  for (const std::string& word : words_of(line.substr(0, line.find("CPU Affinity")))) {
    const bool is_device = word.starts_with("GPU") || word.starts_with("NIC") || word.starts_with("mlx");
    if (is_device) ++head.columns;
  }
  head.has_cpus = true;
  head.has_numa = line.find("NUMA Affinity") != std::string::npos;
  return head;
}

Status read_nvidia_row(const std::string& line, const NvidiaHead& head, Found& found) {
  const auto words = words_of(line);
  const std::size_t needed = head.columns + 2;
  if (words.size() < needed || !words[0].starts_with("GPU")) return {};
  const auto gpu = small_number(words[0].substr(3));
  if (!gpu) return {};
  auto cpus = CpuSet::parse_list(words[needed - 1]);
  if (!cpus) return fail(std::move(cpus.error()).during("\"" + line + "\""));
  found.gpu_cpus[*gpu] = *std::move(cpus);
  found.is_nvidia = true;
  const auto node = head.has_numa && words.size() > needed ? small_number(words[needed]) : std::nullopt;
  found.gpu_numa[*gpu] = node;
  return {};
}

Result<Found> read_lines(std::string_view text) {
  Found found;
  std::optional<NvidiaHead> head;
  for (const std::string_view part : split(text, '\n')) {
    if (part.size() > kMaxLineBytes) continue;
    const std::string line(part);
    DDL_TRY(read_lscpu(line, found));
    read_rocm_smi(line, found);
    if (const auto begins = nvidia_head(line)) {
      head = begins;
    } else if (head) {
      DDL_TRY(read_nvidia_row(line, *head, found));
    }
  }
  return found;
}

/// The cores of a NUMA node's ranges.
std::vector<CpuSet> cores_of(const std::vector<CpuSet>& ranges) {
  std::vector<CpuSet> cores;
  const bool is_smt =
      ranges.size() > 1 && std::all_of(ranges.begin(), ranges.end(), [&](const CpuSet& range) {
        return range.count() == ranges.front().count();
      });
  if (!is_smt) {
    for (const CpuSet& range : ranges) {
      for (const int cpu : range.cpus()) cores.push_back(CpuSet::of({cpu}));
    }
    return cores;
  }
  for (const int cpu : ranges.front().cpus()) {
    CpuSet core;
    for (const CpuSet& range : ranges) core.add(range.first() + cpu - ranges.front().first());
    cores.push_back(core);
  }
  return cores;
}

Status add_cpus(Topology& topology, const Found& found) {
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
    for (const CpuSet& cpus : cores_of(ranges)) topology.cores.push_back({cpus, 0, index, -1});
  }
  topology.allowed = topology.complete;
  topology.packages.push_back({0, topology.complete, topology.complete});
  sort_by_first_cpu(topology.cores);
  return {};
}

void add_gpus(Topology& topology, const Found& found) {
  for (const auto& [index, number] : found.gpu_numa) {
    Gpu gpu;
    gpu.index = index;
    gpu.vendor = found.is_nvidia ? GpuVendor::kNvidia : GpuVendor::kAmd;
    gpu.locality_from = found.is_nvidia ? "nvidia-smi" : "rocm-smi";
    for (int node = 0; node < std::ssize(topology.numa_nodes); ++node) {
      if (topology.numa_nodes[node].os_index != number) continue;
      gpu.numa = node;
      gpu.complete_local_cpus = topology.numa_nodes[node].complete;
    }
    if (const auto cpus = found.gpu_cpus.find(index); cpus != found.gpu_cpus.end())
      gpu.complete_local_cpus = cpus->second;
    gpu.local_cpus = gpu.complete_local_cpus & topology.allowed;
    topology.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

Result<Topology> topology_of_text(std::string_view text, const std::string& source) {
  auto found = read_lines(text);
  if (!found) return fail(std::move(found.error()).during(source));
  if (found->numa.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                source + ": has no line such as \"NUMA node0 CPU(s): 0-15,64-79\"; add the output of lscpu");
  }
  Topology topology;
  topology.source = source;
  if (auto added = add_cpus(topology, *found); !added) return fail(std::move(added.error()).during(source));
  add_gpus(topology, *found);
  topology.warnings.push_back(source +
                              ": has neither packages nor caches, so cores are split by NUMA node alone");
  return topology;
}

}  // namespace ddl::affinity
