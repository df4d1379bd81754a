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

using launcher::PlannedRank;

/// Hosts whose ranks are bound in the same way.
struct BoundHosts {
  std::string_view first;
  std::size_t others = 0;
  std::vector<std::size_t> ranks;  ///< of the first one

  std::string names() const {
    const std::string name = shortened(std::string(first), 40);
    return others == 0 ? name : name + ", and in the same way " + counted(others, "other host");
  }
};

std::string gpus_text(const PlannedRank& rank) {
  std::string text;
  for (const int gpu : rank.gpus) text += (text.empty() ? "GPU " : ", ") + std::to_string(gpu);
  return text;
}

/// In the order of their first ranks.
std::vector<BoundHosts> bound_hosts(const launcher::JobReport& report) {
  std::vector<BoundHosts> hosts;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < std::min(report.ranks.size(), report.planned.size()); ++i) {
    const auto [place, is_new] = places.try_emplace(report.ranks[i].host, hosts.size());
    if (is_new) hosts.push_back({report.ranks[i].host, 0, {}});
    hosts[place->second].ranks.push_back(i);
  }
  std::vector<BoundHosts> groups;
  std::map<std::string, std::size_t> patterns;
  for (BoundHosts& host : hosts) {
    std::string pattern;
    for (const std::size_t rank : host.ranks)
      pattern += report.planned[rank].cpus + " " + gpus_text(report.planned[rank]) + "\n";
    const auto [group, is_new] = patterns.try_emplace(std::move(pattern), groups.size());
    if (is_new) {
      groups.push_back(std::move(host));
    } else {
      ++groups[group->second].others;
    }
  }
  return groups;
}

/// Neighbouring CPUs: the first one, and the one after the last.
std::vector<std::pair<int, int>> runs_of(const PlannedRank& rank) {
  std::vector<std::pair<int, int>> runs;
  const auto cpus = CpuSet::parse_list(rank.cpus);
  for (const int cpu : cpus ? cpus->cpus() : std::vector<int>()) {
    if (runs.empty() || runs.back().second != cpu) runs.emplace_back(cpu, cpu);
    runs.back().second = cpu + 1;
  }
  return runs;
}

}  // namespace

std::string bindings_chart(const launcher::JobReport& report) {
  struct Row {
    std::size_t rank;
    std::vector<std::pair<int, int>> runs;
  };
  struct Picture {
    std::string names;
    std::vector<Row> rows;
  };
  std::vector<Picture> pictures;
  int cpus = 0;
  for (const BoundHosts& hosts : bound_hosts(report)) {
    if (pictures.size() == kMaxBoundHosts) break;
    Picture picture{hosts.names(), {}};
    for (const std::size_t rank : hosts.ranks) {
      if (picture.rows.size() == kMaxRows) break;
      picture.rows.push_back({rank, runs_of(report.planned[rank])});
      if (const auto& runs = picture.rows.back().runs; !runs.empty())
        cpus = std::max(cpus, runs.back().second);
    }
    pictures.push_back(std::move(picture));
  }
  if (cpus == 0) return "";

  constexpr double kLeft = 130, kRow = 16, kBar = 11, kRight = 90, kTitle = 20;
  const double width = (kWidth - kLeft - kRight) / cpus;
  const auto x = [&](int cpu) { return kLeft + cpu * width; };
  const auto step = static_cast<int>(std::max(1.0, axis_step(cpus, 8)));
  SvgCanvas canvas;
  double y = 0;
  for (const Picture& picture : pictures) {
    canvas.text({0, y + 12}, picture.names, label());
    y += kTitle;
    const double bottom = y + kRow * static_cast<double>(picture.rows.size());
    for (int cpu = 0; cpu < cpus; cpu += step) {
      canvas.line({x(cpu), y}, {x(cpu), bottom}, {.stroke = kGrid});
      canvas.text({x(cpu), bottom + 12}, fmt::format("{}", cpu), label("start", kFaint, 11));
    }
    for (const auto& [rank, runs] : picture.rows) {
      const PlannedRank& planned = report.planned[rank];
      const std::string gpus = gpus_text(planned);
      canvas.begin_titled(
          shortened(fmt::format("rank {}: CPUs {} {}", report.ranks[rank].rank, planned.cpus, gpus), 200));
      canvas.text({kLeft - 8, y + kBar - 1}, fmt::format("rank {}", report.ranks[rank].rank), label("end"));
      for (const auto& [first, end] : runs)
        canvas.rectangle({x(first), y}, width * (end - first) - std::min(1.0, width / 4), kBar,
                         {.fill = kCompute});
      if (!gpus.empty()) canvas.text({kWidth - kRight + 8, y + kBar - 1}, shortened(gpus, 14), label());
      canvas.end_titled();
      y += kRow;
    }
    y = bottom + 26;
  }
  return canvas.in_page(kWidth, y, "The CPUs of each rank");
}

}  // namespace ddl::report
