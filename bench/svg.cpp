#include "bench/svg.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::bench {
namespace {

std::string points_text(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points) text += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  return text;
}

std::string dash_attribute(const std::string& dashes) {
  return dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
}

}  // namespace

void Svg::rect(Point corner, double width, double height, const std::string& fill, double opacity,
               double radius) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.1f}\" fill=\"{}\" "
      "fill-opacity=\"{:.2f}\"/>\n",
      corner.x, corner.y, width, height, radius, fill, opacity);
}

void Svg::line(Point from, Point to, const std::string& color, double width, const std::string& dashes) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\"{}/>\n",
      from.x, from.y, to.x, to.y, color, width, dash_attribute(dashes));
}

void Svg::polyline(const std::vector<Point>& points, const std::string& color, double width,
                   const std::string& dashes) {
  body_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" stroke-linejoin=\"round\" "
      "stroke-linecap=\"round\"{}/>\n",
      points_text(points), color, width, dash_attribute(dashes));
}

void Svg::polygon(const std::vector<Point>& points, const std::string& fill, double opacity) {
  body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\"/>\n", points_text(points),
                       fill, opacity);
}

void Svg::circle(Point center, double radius, const std::string& fill) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", center.x, center.y,
                       radius, fill);
}

void Svg::text(Point at, std::string_view text, const TextStyle& style) {
  const char* anchor = style.anchor == Anchor::kStart    ? "start"
                       : style.anchor == Anchor::kMiddle ? "middle"
                                                         : "end";
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
      at.x, at.y, style.size, style.color, anchor, style.is_bold ? " font-weight=\"bold\"" : "",
      xml_escape(text));
}

std::string Svg::document() const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
             "{0:.0f} "
             "{1:.0f}\" font-family=\"'Inter','Helvetica Neue','DejaVu Sans',Arial,sans-serif\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
             width_, height_) +
         body_ + "</svg>\n";
}

}  // namespace ddl::bench
