#include "bench/chart.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::bench {

std::string as_chart(const Report& report) {
  const bool has_sizes = !report.cases.empty() && report.cases.front().bytes.has_value();
  return has_sizes ? line_chart(report) : bar_chart(report);
}

namespace chart {

constexpr double kNoticeableLoad = 0.05;
constexpr double kTitleWidth = 984;
constexpr double kTitleLetter = 0.57;  // of its size, on average

std::string color_of(const Entrant& entrant, std::size_t order) {
  static constexpr const char* kOursToo[] = {kOurs, "#5fb3d1"};
  static constexpr const char* kPeers[] = {"#495057", "#c98a1b", "#8a5a83", "#6a994e"};
  if (entrant.is_limit()) return entrant.name.ends_with("floor") ? "#ced4da" : "#adb5bd";
  return entrant.is_ours ? kOursToo[order % std::size(kOursToo)] : kPeers[order % std::size(kPeers)];
}

double headline(Svg& svg, const Report& report, double left) {
  // A long title in smaller letters, so that it stays inside.
  const double fitting = kTitleWidth / (kTitleLetter * static_cast<double>(report.title.size()));
  svg.text({left, 38}, report.title, {.size = std::min(20.0, fitting), .color = kInk, .is_bold = true});
  svg.text({left, 60}, report.method, {.size = 12.5, .color = kMuted});
  const Machine& machine = report.machine;
  const std::string busy =
      report.other_load < kNoticeableLoad
          ? std::string()
          : fmt::format("; other programs used {:.0f}% of the machine", report.other_load * 100);
  svg.text({left, 78},
           fmt::format("{}, {}, Linux {}{}; {}; {}{}", machine.cpu_model, counted(machine.cpus, "CPU"),
                       machine.kernel, machine.open_mpi.empty() ? "" : ", Open MPI " + machine.open_mpi,
                       counted(report.settings.blocks, "ABBA block"), machine.date, busy),
           {.size = 12.5, .color = kMuted});
  return 78;
}

}  // namespace chart
}  // namespace ddl::bench
