// Times and ratios over the message size, both on logarithmic axes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bench/chart.h"

namespace ddl::bench {
namespace {

using namespace chart;

constexpr double kLinesWidth = 1040;
constexpr double kLeft = 84;
constexpr double kRight = 800;  // labels stand to the right of it
constexpr double kTimesHeight = 380;
constexpr double kRatiosHeight = 190;
constexpr double kMaxRatio = 16;  // end of the scale: larger ratios would hide the differences near 1

// Maps a positive value to a pixel, logarithmically.
struct LogAxis {
  double low, high;  // values
  double low_pixel, high_pixel;
  double operator()(double value) const {
    const double share = (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
    return low_pixel + share * (high_pixel - low_pixel);
  }
};

// The label of a line, and the height at which the line ends.
struct EndLabel {
  double y;
  std::string text;
  std::string color;
  bool is_bold;
};

// Pushes labels apart until none overlap, keeping their order.
void draw_labels(SvgCanvas& canvas, std::vector<EndLabel> labels, double x, double lowest) {
  constexpr double kLineHeight = 17;
  std::sort(labels.begin(), labels.end(), [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kLineHeight);
  double limit = lowest;
  for (std::size_t i = labels.size(); i-- > 0; limit = labels[i].y - kLineHeight)
    labels[i].y = std::min(labels[i].y, limit);
  for (const EndLabel& label : labels) {
    canvas.text({x, label.y + 4.5}, label.text, {.size = 13, .fill = label.color, .is_bold = label.is_bold});
  }
}

struct Series {
  const Contender* contender;
  std::string color;
};

std::vector<Series> series_of(const Report& report) {
  std::vector<Series> series;
  std::size_t ours = 0;
  std::size_t peers = 0;
  for (const Contender& contender : report.contenders) {
    if (contender.is_excluded() || !contender.again_of.empty()) continue;
    std::size_t& order = contender.is_ours ? ours : peers;
    series.push_back({&contender, color_of(contender, order)});
    if (!contender.is_limit()) ++order;
  }
  return series;
}

LogAxis size_axis(const Report& report) {
  return {static_cast<double>(*report.cases.front().bytes), static_cast<double>(*report.cases.back().bytes),
          kLeft + 14, kRight - 14};
}

void draw_size_ticks(SvgCanvas& canvas, const Report& report, double top, double bottom, bool with_labels) {
  const LogAxis x = size_axis(report);
  for (const Case& one : report.cases) {
    const double at = x(static_cast<double>(*one.bytes));
    canvas.line({at, top}, {at, bottom}, {.stroke = kGrid});
    if (with_labels)
      canvas.text({at, bottom + 19}, size_text(*one.bytes), {.size = 12, .fill = kMuted, .anchor = "middle"});
  }
}

void draw_times(SvgCanvas& canvas, const Report& report, double top) {
  const double bottom = top + kTimesHeight;
  const std::vector<Series> series = series_of(report);
  double min_time = 1;
  double max_time = 0;
  for (const Case& one : report.cases) {
    for (const Figures& figures : one.figures) {
      min_time = std::min(min_time, figures.p50());
      max_time = std::max(max_time, figures.p99());
    }
  }
  const LogAxis x = size_axis(report);
  const LogAxis y{min_time / 1.5, max_time * 1.3, bottom, top};
  draw_size_ticks(canvas, report, top, bottom, true);
  for (int decade = -9; decade <= 3; ++decade) {
    const double value = std::pow(10.0, decade);
    if (value < y.low || value > y.high) continue;
    canvas.line({kLeft, y(value)}, {kRight, y(value)}, {.stroke = kGrid});
    const std::string label = decade < -6   ? fmt::format("{:.0f} ns", value * 1e9)
                              : decade < -3 ? fmt::format("{:.0f} µs", value * 1e6)
                              : decade < 0  ? fmt::format("{:.0f} ms", value * 1e3)
                                            : fmt::format("{:.0f} s", value);
    canvas.text({kLeft - 10, y(value) + 4}, label, {.size = 12, .fill = kMuted, .anchor = "end"});
  }
  canvas.text({kLeft, top - 12}, "Time of one call: median, and shaded up to p99",
              {.size = 14, .fill = kInk, .is_bold = true});

  std::vector<EndLabel> labels;
  // Ours is drawn last, so that it lies on top.
  std::vector<Series> drawn = series;
  std::stable_partition(drawn.begin(), drawn.end(),
                        [](const Series& one) { return !one.contender->is_ours; });
  for (const Series& one : drawn) {
    std::vector<SvgPoint> medians;
    std::vector<SvgPoint> band;
    for (const Case& of : report.cases) {
      const Figures* figures = of.figures_of(one.contender->name);
      if (figures == nullptr) continue;  // its ranks were never at this distance
      const double at = x(static_cast<double>(*of.bytes));
      medians.push_back({at, y(figures->p50())});
      band.push_back({at, y(figures->p99())});
    }
    if (medians.empty()) continue;
    band.insert(band.end(), medians.rbegin(), medians.rend());
    if (!one.contender->is_limit()) canvas.polygon(band, {.fill = one.color, .opacity = 0.10});
    canvas.polyline(medians, {.stroke = one.color,
                              .stroke_width = one.contender->is_ours ? 3.0 : 2.0,
                              .dashes = one.contender->is_limit() ? "3 5" : ""});
    for (const SvgPoint& point : medians) {
      if (!one.contender->is_limit())
        canvas.circle(point, one.contender->is_ours ? 4 : 3, {.fill = one.color});
    }
    labels.push_back({medians.back().y, one.contender->label, one.contender->is_limit() ? kMuted : one.color,
                      one.contender->is_ours});
  }
  draw_labels(canvas, std::move(labels), kRight + 8, bottom);
}

std::string times_label(double value) {
  return value >= 1 ? fmt::format("{:.0f}x", value) : fmt::format("1/{:.0f}x", 1 / value);
}

// The bold line: how many times faster ours is than the fastest peer of each case.
void draw_best_peer(SvgCanvas& canvas, const Report& report, const LogAxis& x, const LogAxis& y) {
  std::vector<SvgPoint> points;
  for (const Case& one : report.cases) {
    if (const Comparison* best = best_peer(one, report.contenders))
      points.push_back(
          {x(static_cast<double>(*one.bytes)), std::max(y.high_pixel, y(1 / best->ratio.ratio))});
  }
  if (points.size() > 1) canvas.polyline(points, {.stroke = kOurs, .stroke_width = 4});
}

void draw_ratios(SvgCanvas& canvas, const Report& report, double top) {
  const double bottom = top + kRatiosHeight;
  double max_ratio = 2;
  double min_ratio = 1 / 1.5;
  for (const Case& one : report.cases) {
    if (one.spread) max_ratio = std::max(max_ratio, *one.spread);
    for (const Comparison& found : one.comparisons) {
      if (report.contender(found.peer).is_limit()) continue;
      max_ratio = std::max(max_ratio, 1.25 / found.ratio.ratio);
      min_ratio = std::min(min_ratio, 0.8 / found.ratio.ratio);
    }
  }
  const LogAxis x = size_axis(report);
  const LogAxis y{min_ratio, std::min(max_ratio, kMaxRatio) * 1.1, bottom, top};

  draw_size_ticks(canvas, report, top, bottom, true);
  std::vector<SvgPoint> upper;
  std::vector<SvgPoint> lower;
  for (const Case& one : report.cases) {
    if (!one.spread) continue;
    const double at = x(static_cast<double>(*one.bytes));
    upper.push_back({at, std::clamp(y(*one.spread), top, bottom)});
    lower.push_back({at, std::clamp(y(1 / *one.spread), top, bottom)});
  }
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  if (!upper.empty()) canvas.polygon(upper, {.fill = "#adb5bd", .opacity = 0.35});
  for (int power = -6; power <= 10; ++power) {
    const double value = std::pow(2.0, power);
    if (value < y.low || value > y.high) continue;
    canvas.line({kLeft, y(value)}, {kRight, y(value)},
                power == 0 ? SvgStyle{.stroke = "#868e96", .stroke_width = 1.5} : SvgStyle{.stroke = kGrid});
    canvas.text({kLeft - 10, y(value) + 4}, times_label(value),
                {.size = 12, .fill = kMuted, .anchor = "end"});
  }

  const std::vector<Series> series = series_of(report);
  std::vector<EndLabel> labels;
  std::string subject_label;
  for (const Series& peer : series) {
    if (peer.contender->is_limit()) continue;  // limits are drawn among the times only
    std::vector<SvgPoint> points;
    for (const Case& one : report.cases) {
      for (const Comparison& found : one.comparisons) {
        if (found.peer != peer.contender->name) continue;
        subject_label = report.contender(found.subject).label;
        const double at = x(static_cast<double>(*one.bytes));
        // Quartiles may lie outside the scale, which is made for the medians.
        canvas.line({at, std::clamp(y(1 / found.ratio.low), top, bottom)},
                    {at, std::clamp(y(1 / found.ratio.high), top, bottom)},
                    {.stroke = peer.color, .stroke_width = 1.5});
        points.push_back({at, std::max(top, y(1 / found.ratio.ratio))});
      }
    }
    if (points.empty()) continue;
    canvas.polyline(points, {.stroke = peer.color, .stroke_width = 2});
    for (const SvgPoint& point : points) canvas.circle(point, 3.5, {.fill = peer.color});
    labels.push_back({points.back().y, "than " + peer.contender->label, peer.color, false});
  }
  draw_best_peer(canvas, report, x, y);
  if (labels.empty()) {
    canvas.text({kLeft + 20, (top + bottom) / 2}, "no comparison: a contender is absent",
                {.size = 13, .fill = kMuted});
  }
  canvas.text({kLeft, top - 12},
              subject_label.empty() ? "Ratios" : "How many times faster " + subject_label + " is",
              {.size = 14, .fill = kInk, .is_bold = true});
  draw_labels(canvas, std::move(labels), kRight + 8, bottom);
  canvas.text(
      {kLeft, bottom + 44},
      fmt::format(
          "Median over blocks of paired ratios, with quartiles; below the line: slower; at the top: {:.0f}x "
          "or more. Bold: against the best peer.",
          std::floor(y.high)),
      {.size = 12, .fill = kMuted});
  canvas.text({kLeft, bottom + 61},
              "Grey band: how far a contender differs from itself (A/A); inside of it, equal.",
              {.size = 12, .fill = kMuted});
}

}  // namespace

std::string line_chart(const Report& report) {
  SvgCanvas canvas;
  const double below = headline(canvas, report, 28);
  const double times_top = below + 54;
  draw_times(canvas, report, times_top);
  draw_ratios(canvas, report, times_top + kTimesHeight + 72);
  return canvas.document(kLinesWidth, 86 + 46 + kTimesHeight + 76 + kRatiosHeight + 81, report.title);
}

}  // namespace ddl::bench
