#include "base/svg.h"

#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace ddl {
namespace {

/// A hundredth of a pixel is enough for every screen.
std::string svg_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", std::round(value * 100) / 100);
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}
std::string attribute(const char* name, double value) { return attribute(name, svg_number(value)); }

std::string points_attribute(const std::vector<SvgPoint>& points) {
  std::string text;
  for (const SvgPoint& point : points) {
    if (!text.empty()) text += ' ';
    text += svg_number(point.x) + "," + svg_number(point.y);
  }
  return attribute("points", text);
}

std::string paint(const SvgStyle& style) {
  std::string text = attribute("fill", style.fill);
  if (style.opacity < 1) text += attribute("fill-opacity", style.opacity);
  if (style.stroke == "none") return text;
  text += attribute("stroke", style.stroke) + attribute("stroke-width", style.stroke_width);
  if (!style.dashes.empty()) text += attribute("stroke-dasharray", style.dashes);
  return text;
}

}  // namespace

void SvgCanvas::rectangle(SvgPoint corner, double width, double height, const SvgStyle& style) {
  body_ += "<rect" + attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) +
           attribute("height", height);
  if (style.radius > 0) body_ += attribute("rx", style.radius);
  body_ += paint(style) + "/>\n";
}

void SvgCanvas::line(SvgPoint from, SvgPoint to, const SvgStyle& style) {
  body_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
           attribute("y2", to.y) + paint(style) + "/>\n";
}

void SvgCanvas::polyline(const std::vector<SvgPoint>& points, const SvgStyle& style) {
  body_ += "<polyline" + points_attribute(points) + paint(style) +
           " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n";
}

void SvgCanvas::polygon(const std::vector<SvgPoint>& points, const SvgStyle& style) {
  body_ += "<polygon" + points_attribute(points) + paint(style) + "/>\n";
}

void SvgCanvas::circle(SvgPoint center, double radius, const SvgStyle& style) {
  body_ += "<circle" + attribute("cx", center.x) + attribute("cy", center.y) + attribute("r", radius) +
           paint(style) + "/>\n";
}

void SvgCanvas::path(std::string_view commands, const SvgStyle& style) {
  body_ += "<path" + attribute("d", std::string(commands)) + paint(style) + "/>\n";
}

void SvgCanvas::text(SvgPoint baseline, std::string_view text, const SvgText& style) {
  body_ += "<text" + attribute("x", baseline.x) + attribute("y", baseline.y) +
           attribute("font-size", style.size) + attribute("fill", style.fill) +
           attribute("text-anchor", std::string(style.anchor));
  if (style.is_bold) body_ += " font-weight=\"bold\"";
  body_ += ">" + xml_escape(text) + "</text>\n";
}

void SvgCanvas::begin_titled(std::string_view title) {
  body_ += "<g><title>" + xml_escape(title) + "</title>\n";
}
void SvgCanvas::end_titled() { body_ += "</g>\n"; }

std::string SvgCanvas::in_page(double width, double height, std::string_view title) const {
  return "<svg" + attribute("viewBox", "0 0 " + svg_number(width) + " " + svg_number(height)) +
         attribute("style", "max-width:" + svg_number(width) + "px") + " role=\"img\">\n<title>" +
         xml_escape(title) + "</title>\n" + body_ + "</svg>\n";
}

std::string SvgCanvas::document(double width, double height, std::string_view title) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
         attribute("height", height) +
         attribute("viewBox", "0 0 " + svg_number(width) + " " + svg_number(height)) +
         " font-family=\"'Helvetica Neue',Helvetica,'DejaVu Sans',Arial,sans-serif\" role=\"img\">\n<title>" +
         xml_escape(title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body_ +
         "</svg>\n";
}

}  // namespace ddl
