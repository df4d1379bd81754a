// A report as a picture: what both kinds of chart share, and the chart of bars. chart_lines.cpp draws the other kind.
#pragma once

#include <string>

#include "base/svg.h"
#include "bench/report.h"

namespace ddl::bench {

/// An SVG document: lines over the message size where the cases have one, else bars.
std::string as_chart(const Report& report);

/// For cases by message size: times above, and below how many times faster each subject is than its peers, with the
/// band of the A/A spread, in which a difference counts as equal.
std::string line_chart(const Report& report);
/// For other cases: one bar per contender, grouped by case; the gauges below.
std::string bar_chart(const Report& report);

/// Shared by both kinds of chart.
namespace chart {

inline constexpr char kInk[] = "#212529";
inline constexpr char kMuted[] = "#6c757d";
inline constexpr char kGrid[] = "#e9ecef";
inline constexpr char kOurs[] = "#0b7fab";

/// Ours in the accent colour, peers in greys and ochre, floors lightest. order: the contender's index among ours or
/// among the peers.
std::string color_of(const Contender& contender, std::size_t order);
/// Title, method and machine at the top left; returns the y below them.
double headline(SvgCanvas& canvas, const Report& report, double left);

}  // namespace chart
}  // namespace ddl::bench
