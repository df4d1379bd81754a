#include "affinity/output/svg_canvas.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::affinity {
void SvgCanvas::rectangle(double x, double y, double width, double height, const Style& style) {
  body_ += fmt::format(
      R"(<rect x="{:g}" y="{:g}" width="{:g}" height="{:g}" rx="{:g}" fill="{}" stroke="{}" stroke-width="{:g}")",
      x, y, width, height, style.radius, style.fill, style.stroke, style.stroke_width);
  if (*style.dashes != '\0') body_ += fmt::format(R"( stroke-dasharray="{}")", style.dashes);
  body_ += "/>\n";
}

void SvgCanvas::text(double x, double baseline, std::string_view text, const SvgText& style) {
  body_ += fmt::format(R"(<text x="{:g}" y="{:g}" font-size="{:g}" fill="{}" text-anchor="{}"{}>{}</text>)",
                       x, baseline, style.size, style.fill, style.anchor,
                       style.is_bold ? R"( font-weight="bold")" : "", xml_escape(text));
  body_ += "\n";
}

void SvgCanvas::begin_titled(std::string_view title) {
  body_ += "<g><title>" + xml_escape(title) + "</title>\n";
}
void SvgCanvas::end_titled() { body_ += "</g>\n"; }

std::string SvgCanvas::finish(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} "
      "{1:g}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width, height, xml_escape(title), body_);
}

}  // namespace ddl::affinity
