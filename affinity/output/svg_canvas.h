// The few shapes that a picture of a node is made of.
#pragma once

#include <string>
#include <string_view>

namespace ddl::affinity {

struct SvgText {
  double size = 11;
  const char* fill = "#24292f";
  const char* anchor = "start";  ///< start, middle or end
  bool is_bold = false;
};

/// Lengths are pixels; what is drawn later lies on top.
class SvgCanvas {
 public:
  struct Style {
    std::string fill = "none";
    std::string stroke = "none";
    double stroke_width = 1;
    double radius = 3;
    const char* dashes = "";
  };
  void rectangle(double x, double y, double width, double height, const Style& style);
  void text(double x, double baseline, std::string_view text, const SvgText& style);
  /// What a browser shows where the pointer rests: for the shape that follows.
  void begin_titled(std::string_view title);
  void end_titled();
  /// The whole picture; title is what a screen reader says.
  std::string finish(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace ddl::affinity
