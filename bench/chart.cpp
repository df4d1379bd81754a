#include "bench/chart.h"

#include <algorithm>
#include <cmath>

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
constexpr double kTitleLetter = 0.57;  // average width of a letter / font size

std::string color_of(const Contender& contender, std::size_t order) {
  static constexpr const char* kOursToo[] = {kOurs, "#5fb3d1"};
  static constexpr const char* kPeers[] = {"#495057", "#c98a1b", "#8a5a83", "#6a994e"};
  if (contender.is_limit()) return contender.name.ends_with("floor") ? "#ced4da" : "#adb5bd";
  return contender.is_ours ? kOursToo[order % std::size(kOursToo)] : kPeers[order % std::size(kPeers)];
}

double headline(SvgCanvas& canvas, const Report& report, double left) {
  // A long title in smaller letters, so that it stays inside.
  const double fitting = kTitleWidth / (kTitleLetter * static_cast<double>(report.title.size()));
  canvas.text({left, 38}, report.title, {.size = std::min(20.0, fitting), .fill = kInk, .is_bold = true});
  canvas.text({left, 60}, report.method, {.size = 12.5, .fill = kMuted});
  const Machine& machine = report.machine;
  const std::string busy =
      report.other_load < kNoticeableLoad
          ? std::string()
          : fmt::format("; other programs used {:.0f}% of the machine", report.other_load * 100);
  canvas.text({left, 78},
              fmt::format("{}, {}, Linux {}{}; {}; {}{}", machine.cpu_model, counted(machine.cpus, "CPU"),
                          machine.kernel, machine.open_mpi.empty() ? "" : ", Open MPI " + machine.open_mpi,
                          counted(report.settings.blocks, "ABBA block"), machine.date, busy),
              {.size = 12.5, .fill = kMuted});
  return 78;
}

}  // namespace chart

// One bar per contender, grouped by case, each case on a scale of its own; gauges in the same manner below.
namespace {

using namespace chart;

constexpr double kWidth = 1080;
constexpr double kMargin = 28;
constexpr double kBarsLeft = 250;
constexpr double kBarsRight = 640;
constexpr double kRemarksLeft = 800;
constexpr double kRow = 30;
constexpr double kBar = 18;
constexpr double kGroupGap = 50;
constexpr double kRemarkLine = 15;
// An upper bound, so that the note stays clear of the title.
constexpr double kTitleCharacter = 9.5;

struct Bar {
  std::string label;
  std::string color;
  bool is_bold = false;
  double value = 0;
  double whisker = 0;  // the value at which the thin line after the bar ends; 0: no line
  std::string value_text;
  std::vector<std::string> remarks;  // to the right, below each other
  std::string missing;               // instead of the bar
};

double draw_group(SvgCanvas& canvas, double y, const std::string& title, const std::string& note,
                  const std::vector<Bar>& bars) {
  // One run that took very long must not make the bars unreadable: its whisker is cut, and a text gives the p99.
  double shown_max = 0;
  double value_max = 0;
  for (const Bar& bar : bars) {
    shown_max = std::max(shown_max, bar.value);
    value_max = std::max({value_max, bar.value, bar.whisker});
  }
  shown_max = std::min(1.6 * shown_max, value_max);
  if (shown_max <= 0) shown_max = 1;
  const double scale = (kBarsRight - kBarsLeft) / shown_max;
  canvas.text({kMargin, y}, title, {.size = 15, .fill = kInk, .is_bold = true});
  canvas.text({std::max(kBarsLeft, kMargin + kTitleCharacter * static_cast<double>(title.size())), y}, note,
              {.size = 12, .fill = kMuted});
  y += 12;
  canvas.line({kBarsLeft, y}, {kBarsLeft, y + kRow * static_cast<double>(bars.size())},
              {.stroke = "#ced4da"});
  double remarks_end = y;
  for (const Bar& bar : bars) {
    const double middle = y + kRow / 2;
    canvas.text({kBarsLeft - 12, middle + 4.5}, bar.label,
                {.size = 13, .fill = kInk, .anchor = "end", .is_bold = bar.is_bold});
    y += kRow;
    if (!bar.missing.empty()) {
      canvas.text({kBarsLeft + 10, middle + 4.5}, bar.missing, {.size = 12, .fill = kMuted});
      continue;
    }
    const double end = kBarsLeft + std::max(1.5, bar.value * scale);
    canvas.rectangle({kBarsLeft, middle - kBar / 2}, end - kBarsLeft, kBar, {.fill = bar.color, .radius = 2});
    double text_from = end;
    const bool is_cut = bar.whisker > shown_max;
    if (bar.whisker > bar.value) {
      text_from = kBarsLeft + std::min(bar.whisker, shown_max) * scale;
      canvas.line({end, middle}, {text_from, middle},
                  {.stroke = bar.color, .stroke_width = 1.5, .dashes = is_cut ? "4 3" : ""});
      if (!is_cut)
        canvas.line({text_from, middle - 5}, {text_from, middle + 5},
                    {.stroke = bar.color, .stroke_width = 1.5});
    }
    const std::string beyond = is_cut ? " (p99 " + time_text(bar.whisker) + ")" : "";
    canvas.text({text_from + 9, middle + 4.5}, bar.value_text + beyond,
                {.size = 13, .fill = kInk, .is_bold = bar.is_bold});
    // Beside the bar, but below the remarks of the bars above.
    double remark_y = std::max(middle + 4.5 - kRemarkLine / 2 * (static_cast<double>(bar.remarks.size()) - 1),
                               remarks_end + kRemarkLine);
    for (const std::string& remark : bar.remarks) {
      canvas.text({kRemarksLeft, remark_y}, remark, {.size = 12, .fill = kOurs});
      remarks_end = remark_y;
      remark_y += kRemarkLine;
    }
  }
  return y;
}

// The A/A contender has no row: its spread is part of the note.
std::vector<Bar> bars_of(const Report& report, const Case& one) {
  std::vector<Bar> bars;
  std::size_t ours = 0;
  std::size_t peers = 0;
  for (const std::string& name : one.contenders) {
    const Contender& contender = report.contender(name);
    if (!contender.again_of.empty()) continue;
    std::size_t& order = contender.is_ours ? ours : peers;
    Bar bar{.label = contender.label, .color = color_of(contender, order), .is_bold = contender.is_ours};
    if (!contender.is_limit()) ++order;
    if (const Figures* figures = one.figures_of(name)) {
      bar.value = figures->p50();
      bar.whisker = figures->p99();
      bar.value_text = time_text(figures->p50());
      for (const Comparison& found : one.comparisons) {
        if (found.subject != name) continue;
        const bool is_equal = conclude(found.ratio, found.spread) == Conclusion::kEqual;
        bar.remarks.push_back(conclusion_text(found.ratio, found.spread) + (is_equal ? " to " : " than ") +
                              report.contender(found.peer).label);
      }
    } else {
      bar.missing = contender.why_excluded().substr(0, 90);
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

std::vector<Bar> gauge_bars(const Report& report, const std::string& unit) {
  std::vector<Bar> bars;
  for (const Gauge& gauge : report.gauges) {
    if (gauge.unit != unit) continue;
    const bool is_ours = gauge.name.starts_with("ddl");
    Bar bar{.label = gauge.label, .color = is_ours ? kOurs : "#495057", .is_bold = is_ours};
    if (gauge.value) {
      bar.value = *gauge.value;
      bar.value_text = unit == "bytes" ? fmt::format("{:.1f} MB", *gauge.value / 1e6)
                                       : fmt::format("{:.3f}% of a core", *gauge.value * 100);
    } else {
      bar.missing = gauge.note.substr(0, 90);
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

}  // namespace

std::string bar_chart(const Report& report) {
  struct Group {
    std::string title;
    std::string note;
    std::vector<Bar> bars;
  };
  std::vector<Group> groups;
  for (const Case& one : report.cases) {
    const std::string spread =
        one.spread ? fmt::format("; A/A spread ±{:.0f}%", std::ceil((*one.spread - 1) * 100)) : std::string();
    groups.push_back({one.label, "median wall time, and a line to p99" + spread, bars_of(report, one)});
  }
  if (auto bars = gauge_bars(report, "bytes"); !bars.empty()) {
    groups.push_back(
        {"memory", "unique (private) memory of the launcher's processes, 2 idle ranks", std::move(bars)});
  }
  if (auto bars = gauge_bars(report, "cores"); !bars.empty()) {
    groups.push_back(
        {"idle CPU", "all processes of an initialised job of 8 ranks that do nothing", std::move(bars)});
  }
  double height = 78 + 24;
  for (const Group& group : groups) height += kGroupGap + kRow * static_cast<double>(group.bars.size());
  SvgCanvas canvas;
  double y = headline(canvas, report, kMargin);
  for (const Group& group : groups)
    y = draw_group(canvas, y + kGroupGap - 12, group.title, group.note, group.bars);
  return canvas.document(kWidth, height, report.title);
}

}  // namespace ddl::bench
