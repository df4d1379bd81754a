// The CPUs that ranks are bound to.
#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/cpu_set.h"
#include "base/text.h"
#include "report/chart_style.h"
#include "report/charts.h"

namespace ddl::report {
namespace {

/// Hosts whose ranks are bound in the same way.
struct BoundHost {
  struct Rank {
    int rank = 0;
    CpuSet cpus;
    std::string gpus;  ///< "GPU 0, 1"; "": none
  };
  std::vector<std::string> names;
  std::vector<Rank> ranks;  ///< of the first one

  std::string name() const {
    return shortened(names.front(), 40) +
           (names.size() > 1 ? ", and in the same way " + counted(names.size() - 1, "other host") : "");
  }
};

std::vector<BoundHost> bound_hosts(const launcher::JobReport& report) {
  std::vector<std::pair<std::string_view, std::vector<BoundHost::Rank>>> hosts;
  for (std::size_t i = 0; i < std::min(report.ranks.size(), report.planned.size()); ++i) {
    const launcher::PlannedRank& planned = report.planned[i];
    const auto cpus = CpuSet::parse_list(planned.cpus);
    BoundHost::Rank rank{report.ranks[i].rank, cpus ? *cpus : CpuSet(), ""};
    for (const int gpu : planned.gpus) rank.gpus += (rank.gpus.empty() ? "GPU " : ", ") + std::to_string(gpu);
    if (hosts.empty() || hosts.back().first != report.ranks[i].host) {
      const auto known =
          std::ranges::find(hosts, report.ranks[i].host, [](const auto& one) { return one.first; });
      if (known != hosts.end()) {
        known->second.push_back(std::move(rank));
        continue;
      }
      hosts.push_back({report.ranks[i].host, {}});
    }
    hosts.back().second.push_back(std::move(rank));
  }
  std::vector<BoundHost> groups;
  std::map<std::string, std::size_t> known;
  for (auto& [name, ranks] : hosts) {
    std::string pattern;
    for (const BoundHost::Rank& rank : ranks) pattern += rank.cpus.list() + " " + rank.gpus + "\n";
    const auto [group, is_new] = known.try_emplace(pattern, groups.size());
    if (is_new) groups.push_back({{}, std::move(ranks)});
    groups[group->second].names.emplace_back(name);
  }
  return groups;
}

}  // namespace

std::string bindings_chart(const launcher::JobReport& report) {
  const std::vector<BoundHost> hosts = bound_hosts(report);
  constexpr double kLeft = 130, kRow = 16, kBar = 11, kRight = 90, kTitle = 20;
  int cpus = 0;
  for (const BoundHost& host : hosts)
    for (const BoundHost::Rank& rank : host.ranks)
      if (!rank.cpus.is_empty()) cpus = std::max(cpus, rank.cpus.cpus().back() + 1);
  if (cpus == 0) return "";
  const double width = (kWidth - kLeft - kRight) / cpus;
  SvgCanvas canvas;
  double y = 0;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMaxBoundHosts); ++i) {
    const BoundHost& host = hosts[i];
    const std::size_t rows = std::min<std::size_t>(host.ranks.size(), kMaxRows);
    canvas.text({0, y + 12}, host.name(), label());
    y += kTitle;
    const double bottom = y + kRow * static_cast<double>(rows);
    const auto step = static_cast<int>(std::max(1.0, axis_step(cpus, 8)));
    for (int cpu = 0; cpu < cpus; cpu += step) {
      canvas.line({kLeft + cpu * width, y}, {kLeft + cpu * width, bottom}, {.stroke = kGrid});
      canvas.text({kLeft + cpu * width, bottom + 12}, fmt::format("{}", cpu), label("start", kFaint, 11));
    }
    for (const BoundHost::Rank& rank : std::span(host.ranks).first(rows)) {
      canvas.begin_titled(fmt::format("rank {}: CPUs {} {}", rank.rank, rank.cpus.list(), rank.gpus));
      canvas.text({kLeft - 8, y + kBar - 1}, fmt::format("rank {}", rank.rank), label("end"));
      const std::vector<int> numbers = rank.cpus.cpus();
      for (std::size_t first = 0, next = 0; first < numbers.size(); first = next) {
        for (next = first + 1; next < numbers.size() && numbers[next] == numbers[next - 1] + 1;) ++next;
        canvas.rectangle({kLeft + numbers[first] * width, y},
                         width * static_cast<double>(next - first) - std::min(1.0, width / 4), kBar,
                         {.fill = kCompute});
      }
      if (!rank.gpus.empty()) canvas.text({kWidth - kRight + 8, y + kBar - 1}, rank.gpus, label());
      canvas.end_titled();
      y += kRow;
    }
    y = bottom + 26;
  }
  return canvas.in_page(kWidth, y, "The CPUs of each rank");
}

}  // namespace ddl::report
