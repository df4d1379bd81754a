// Writes an SVG document element by element.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl::bench {

struct Point {
  double x = 0;
  double y = 0;
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 13;
  std::string color = "#343a40";
  Anchor anchor = Anchor::kStart;
  bool is_bold = false;
};

/// Collects elements in drawing order; coordinates are pixels from the top left corner.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  void rect(Point corner, double width, double height, const std::string& fill, double opacity = 1,
            double radius = 0);
  void line(Point from, Point to, const std::string& color, double width, const std::string& dashes = "");
  void polyline(const std::vector<Point>& points, const std::string& color, double width,
                const std::string& dashes = "");
  void polygon(const std::vector<Point>& points, const std::string& fill, double opacity);
  void circle(Point center, double radius, const std::string& fill);
  /// at is the start, middle or end of the baseline.
  void text(Point at, std::string_view text, const TextStyle& style);

  /// The whole document, on white.
  std::string document() const;

 private:
  double width_;
  double height_;
  std::string body_;
};

}  // namespace ddl::bench
