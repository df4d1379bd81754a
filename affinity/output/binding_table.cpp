#include "affinity/output/binding_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "affinity/output/topology_text.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

using Row = std::array<std::string, 6>;
constexpr std::size_t kColumns = std::tuple_size_v<Row>;

Row headings() { return {"rank", "CPUs", "cores", "NUMA", "GPU", "NIC"}; }

std::string numbers(const std::vector<int>& all) { return CpuSet::of(all).list(); }

std::string gpus_of(const RankBinding& rank) {
  std::vector<std::string> names;
  for (const AssignedGpu& gpu : rank.gpus)
    names.push_back(fmt::format("{}{}", gpu.index, gpu.bus_id.empty() ? "" : " (" + gpu.bus_id + ")"));
  return join(names, ", ");
}

std::string warning_lines(const BindingPlan& plan) {
  std::string text;
  for (const std::string& warning : plan.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

std::string binding_table(const Topology& topology, const BindingPlan& plan) {
  std::string text = summary_line(topology);
  if (plan.ranks.empty()) return text + "ranks are bound to nothing\n" + warning_lines(plan);
  std::vector<Row> rows{headings()};
  for (const RankBinding& rank : plan.ranks) {
    rows.push_back({std::to_string(rank.local_rank), rank.cpus.list(), std::to_string(rank.threads),
                    numbers(rank.numa_nodes), gpus_of(rank), join(rank.nics, ",")});
  }
  // A column that says nothing is omitted.
  for (std::size_t column = 0; column < kColumns; ++column) {
    const bool is_empty =
        std::all_of(rows.begin() + 1, rows.end(), [&](const Row& row) { return row[column].empty(); });
    if (is_empty) rows[0][column].clear();
  }
  text += "\n";
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::size_t width = 0;
      for (const Row& other : rows) width = std::max(width, other[column].size());
      if (width > 0) line += fmt::format("{:<{}}", row[column], width + 2);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string warnings = warning_lines(plan);
  return warnings.empty() ? text : text + "\n" + warnings;
}

std::string binding_explanation(const Topology& topology, const BindingPlan& plan) {
  std::string text = summary_line(topology);
  if (plan.ranks.empty()) text += "ranks are bound to nothing, as --bind-to none says\n";
  for (const RankBinding& rank : plan.ranks) {
    const char* const what = rank.cpus.count() == 1 ? "CPU" : "CPUs";
    text += fmt::format("rank {}: {} {}{}: {}.\n", rank.local_rank, what, rank.cpus.list(),
                        rank.nics.empty() ? "" : " and " + join(rank.nics, ","), rank.why);
  }
  return text + warning_lines(plan);
}

}  // namespace ddl::affinity
