// A line plot as SVG: axes, curves, dots, tinted ranges of x, a legend. Knows nothing of what it shows.
#pragma once

#include <string>
#include <vector>

#include <Eigen/Core>

namespace fit {

/// Colours are written into the SVG as they are, for example "#0072b2"; labels may hold any UTF-8 text.
struct Curve {
  Eigen::RowVectorXd x, y;
  std::string colour;
  double width = 2.0;  ///< pixels
  bool dashed = false;
};

struct Dots {
  Eigen::RowVectorXd x, y;
  std::string colour;
  double radius = 4.5;  ///< pixels
};

/// A range of x with a tint behind it and its label at the top, left out where it would not fit.
struct Band {
  double begin = 0.0, end = 0.0;
  std::string colour;
  std::string label;
};

/// A sample of a curve (one colour), or of dots (one of each colour), with its meaning.
struct LegendEntry {
  enum class Kind { kCurve, kDashedCurve, kDots };
  Kind kind = Kind::kCurve;
  std::vector<std::string> colours;
  double width = 2.0;
  std::string label;
};

struct Plot {
  std::string title, subtitle;
  std::string x_label, y_label;     ///< y_label stands at the top of its axis and should be short
  double x_min = 0.0, x_max = 1.0;  ///< what lies outside of these ranges is not shown
  double y_min = 0.0, y_max = 1.0;
  std::vector<Band>
      bands;  ///< drawn first; then the curves, the dots, and the bands' labels, each in their order
  std::vector<Curve> curves;
  std::vector<Dots> dots;
  std::vector<LegendEntry> legend;
};

/// The whole SVG document. Equal plots give equal text.
std::string to_svg(const Plot& plot);

/// Writes text into path; throws std::system_error naming it.
void write_file(const std::string& path, const std::string& text);

}  // namespace fit
