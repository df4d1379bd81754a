// A picture in SVG, element by element. What is drawn later lies on top.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl {

/// Pixels from the top left corner.
struct SvgPoint {
  double x = 0;
  double y = 0;
};

/// How an area or a line is painted. Colours are those of CSS ("#1f6feb", or "var(--bar)" in a page), "none" paints
/// nothing.
struct SvgStyle {
  std::string fill = "none";
  double opacity = 1;  ///< of the fill
  std::string stroke = "none";
  double stroke_width = 1;
  std::string dashes;  ///< lengths of dash and gap ("4 3"), "" for a solid line
  double radius = 0;   ///< of a rectangle's corners
};

struct SvgText {
  double size = 11;
  std::string fill = "#24292f";
  const char* anchor = "start";  ///< the part of the text that is at the given point: start, middle or end
  bool is_bold = false;
};

class SvgCanvas {
 public:
  void rectangle(SvgPoint corner, double width, double height, const SvgStyle& style);
  void line(SvgPoint from, SvgPoint to, const SvgStyle& style);
  void polyline(const std::vector<SvgPoint>& points, const SvgStyle& style);
  void polygon(const std::vector<SvgPoint>& points, const SvgStyle& style);
  void circle(SvgPoint center, double radius, const SvgStyle& style);
  /// commands: SVG's own ("M0 0h9v9h-9z").
  void path(std::string_view commands, const SvgStyle& style);
  /// baseline: where the anchor of the text is.
  void text(SvgPoint baseline, std::string_view text, const SvgText& style);
  /// A browser shows the title of the elements up to end_titled() where the pointer rests on one of them.
  void begin_titled(std::string_view title);
  void end_titled();

  /// The whole picture, on white. title: what a screen reader reads out.
  std::string document(double width, double height, std::string_view title) const;
  /// The same as a part of a page of HTML, as wide as there is room, on the page's own background.
  std::string in_page(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace ddl
