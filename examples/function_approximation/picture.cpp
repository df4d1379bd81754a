#include "picture.h"

#include <algorithm>
#include <cmath>

namespace fit {
namespace {

// Okabe and Ito's colours, darkened a little for thin lines on white: distinguishable with any colour vision.
const std::vector<std::string> kRankColours = {"#0072b2", "#d55e00", "#009e73", "#b0487f",
                                               "#c98a00", "#2f9fd8", "#6a3d9a", "#6b7280"};
const std::string kTargetColour = "#c3cad2";
const std::string kFitColour = "#111827";

const std::string& colour_of_rank(std::size_t rank) { return kRankColours[rank % kRankColours.size()]; }

/// The part of a curve with begin <= x <= end.
Curve cut(const Curve& curve, double begin, double end) {
  const auto* first = curve.x.data();
  const auto* last = first + curve.x.size();
  const Eigen::Index from = std::lower_bound(first, last, begin) - first;
  const Eigen::Index count = std::max<Eigen::Index>(0, std::upper_bound(first, last, end) - first - from);
  Curve piece = curve;
  piece.x = curve.x.segment(from, count);
  piece.y = curve.y.segment(from, count);
  return piece;
}

}  // namespace

Plot fit_picture(const std::vector<Part>& parts, const Eigen::RowVectorXd& grid, const Eigen::MatrixXd& fits,
                 const std::string& title, const std::string& subtitle) {
  using Kind = LegendEntry::Kind;
  Plot plot;
  plot.title = title;
  plot.subtitle = subtitle;
  plot.x_label = "x";
  plot.y_label = "y";
  plot.x_min = kLeft;
  plot.x_max = kRight;
  plot.y_min = -2.2;  // the target stays within 1.77; the rest is room for the ranks' names
  plot.y_max = 2.6;

  constexpr double kTargetWidth = 7, kFitWidth = 2.2;
  plot.curves.push_back({grid, target(grid), kTargetColour, kTargetWidth, false});
  plot.legend.push_back({Kind::kCurve, {kTargetColour}, kTargetWidth, "target"});

  const bool one_fit = fits.cols() == 1;
  if (one_fit) {
    plot.curves.push_back({grid, fits.col(0).transpose(), kFitColour, kFitWidth, false});
    plot.legend.push_back({Kind::kCurve, {kFitColour}, kFitWidth, "fit"});
  } else {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const Curve whole{grid, fits.col(static_cast<Eigen::Index>(rank)).transpose(), colour_of_rank(rank),
                        kFitWidth, false};
      for (const bool left : {true, false}) {
        Curve outside = left ? cut(whole, kLeft, parts[rank].begin) : cut(whole, parts[rank].end, kRight);
        outside.dashed = true;
        outside.width = 1.4;
        if (outside.x.size() > 1) plot.curves.push_back(outside);
      }
      plot.curves.push_back(cut(whole, parts[rank].begin, parts[rank].end));
    }
    plot.legend.push_back({Kind::kCurve, {kFitColour}, kFitWidth, "fit of a rank in its own part"});
    plot.legend.push_back({Kind::kDashedCurve, {kFitColour}, 1.4, "and outside of it"});
  }

  LegendEntry dots{Kind::kDots, {}, 0, parts.size() > 1 ? "training points, by rank" : "training points"};
  Eigen::Index points = 0;
  for (const Part& part : parts) points += part.x.size();
  const double radius =
      std::clamp(4.5 * std::sqrt(64.0 / static_cast<double>(points)), 1.8, 4.5);  // keeps them apart
  const std::string word =
      parts.size() <= kRankColours.size() ? "rank " : "";  // narrower parts have room for a number
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    plot.bands.push_back(
        {parts[rank].begin, parts[rank].end, colour_of_rank(rank), word + std::to_string(rank)});
    plot.dots.push_back({parts[rank].x, parts[rank].y, colour_of_rank(rank), radius});
    if (rank < kRankColours.size()) dots.colours.push_back(colour_of_rank(rank));
  }
  plot.legend.push_back(dots);
  return plot;
}

}  // namespace fit
