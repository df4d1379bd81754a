#include "plot.h"

#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace fit {
namespace {

// Pixels. A viewer may scale the canvas freely.
constexpr double kWidth = 960, kHeight = 560;
constexpr double kLeftEdge = 72, kRightEdge = 932, kTopEdge = 112, kBottomEdge = 494;
constexpr double kTextSize = 14;
constexpr double kAverageGlyph = 0.51;  // of the text size, for sans-serif text

constexpr char kInk[] = "#1f2933";
constexpr char kMuted[] = "#5c6773";
constexpr char kGrid[] = "#d9dee4";

__attribute__((format(printf, 2, 3))) void add(std::string& svg, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  const std::size_t old = svg.size();
  svg.resize(old + static_cast<std::size_t>(length) + 1);
  std::vsnprintf(svg.data() + old, static_cast<std::size_t>(length) + 1, format, again);
  va_end(again);
  svg.resize(old + static_cast<std::size_t>(length));
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

double text_width(const std::string& text) {
  double glyphs = 0;
  for (const char c : text) glyphs += (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // UTF-8 lead bytes
  return glyphs * kAverageGlyph * kTextSize;
}

/// Data range to pixels.
struct Scale {
  double from, to, pixel_from, pixel_to;
  double operator()(double value) const {
    return pixel_from + (value - from) / (to - from) * (pixel_to - pixel_from);
  }
};

/// A step of 1, 2 or 5 times a power of ten that cuts the range into at most the given number of pieces.
double tick_step(double range, int pieces) {
  const double rough = range / pieces;
  const double magnitude = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * magnitude >= rough * (1 - 1e-9)) return factor * magnitude;
  }
  return 10 * magnitude;
}

std::string tick_label(double value, double step) {
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  std::string text;
  if (value < 0) text += "\u2212";
  add(text, "%.*f", decimals, std::abs(value));
  return text;
}

class Document {
 public:
  explicit Document(const Plot& plot)
      : plot_(plot),
        x_{plot.x_min, plot.x_max, kLeftEdge, kRightEdge},
        y_{plot.y_min, plot.y_max, kBottomEdge, kTopEdge} {}

  std::string text() {
    open();
    heading();
    legend();
    bands();
    axes();
    add(svg_, "<g clip-path=\"url(#inside)\">\n");
    for (const Curve& curve : plot_.curves) draw(curve);
    add(svg_, "</g>\n");
    for (const Dots& dots : plot_.dots) draw(dots);
    band_labels();
    add(svg_, "</svg>\n");
    return std::move(svg_);
  }

 private:
  void open() {
    add(svg_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
        "role=\"img\" "
        "font-family=\"'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"%g\" "
        "fill=\"%s\">\n",
        kWidth, kHeight, kWidth, kHeight, kTextSize, kInk);
    add(svg_, "<title>%s</title>\n<desc>%s</desc>\n", escaped(plot_.title).c_str(),
        escaped(plot_.subtitle).c_str());
    add(svg_, "<clipPath id=\"inside\"><rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/></clipPath>\n",
        kLeftEdge, kTopEdge, kRightEdge - kLeftEdge, kBottomEdge - kTopEdge);
    add(svg_, "<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", kWidth, kHeight);
  }

  void heading() {
    add(svg_, "<text x=\"%g\" y=\"36\" font-size=\"21\" font-weight=\"bold\">%s</text>\n", kLeftEdge,
        escaped(plot_.title).c_str());
    add(svg_, "<text x=\"%g\" y=\"59\" fill=\"%s\">%s</text>\n", kLeftEdge, kMuted,
        escaped(plot_.subtitle).c_str());
  }

  void legend() {
    constexpr double kBaseline = 92, kMiddle = kBaseline - 5, kSample = 30, kGap = 8, kBetween = 28,
                     kDotStep = 11;
    double x = kLeftEdge;
    for (const LegendEntry& entry : plot_.legend) {
      double sample = kSample;
      if (entry.kind == LegendEntry::Kind::kDots) {
        sample = kDotStep * static_cast<double>(entry.colours.size());
        double at = x + kDotStep / 2;
        for (const std::string& colour : entry.colours) {
          add(svg_, "<circle cx=\"%.1f\" cy=\"%g\" r=\"4.5\" fill=\"%s\"/>\n", at, kMiddle, colour.c_str());
          at += kDotStep;
        }
      } else {
        const bool dashed = entry.kind == LegendEntry::Kind::kDashedCurve;
        add(svg_, "<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\" stroke=\"%s\" stroke-width=\"%g\"%s/>\n",
            x, kMiddle, x + kSample, kMiddle, entry.colours.front().c_str(), entry.width,
            dashed ? kDashes : "");
      }
      add(svg_, "<text x=\"%.1f\" y=\"%g\">%s</text>\n", x + sample + kGap, kBaseline,
          escaped(entry.label).c_str());
      x += sample + kGap + text_width(entry.label) + kBetween;
    }
  }

  void bands() {
    for (const Band& band : plot_.bands) {
      const double left = x_(band.begin), right = x_(band.end);
      add(svg_,
          "<rect x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\" fill=\"%s\" fill-opacity=\"0.08\"/>\n",
          left, kTopEdge, right - left, kBottomEdge - kTopEdge, band.colour.c_str());
    }
  }

  void band_labels() {
    for (const Band& band : plot_.bands) {
      const double left = x_(band.begin), right = x_(band.end);
      if (text_width(band.label) + 4 > right - left) continue;
      // A white rim keeps the text readable where a curve passes behind it.
      add(svg_,
          "<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"%s\" "
          "stroke=\"#ffffff\" "
          "stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\">%s</text>\n",
          (left + right) / 2, kTopEdge + 21, band.colour.c_str(), escaped(band.label).c_str());
    }
  }

  void axes() {
    constexpr int kPiecesX = 10, kPiecesY = 6;
    const double step_x = tick_step(plot_.x_max - plot_.x_min, kPiecesX);
    const double step_y = tick_step(plot_.y_max - plot_.y_min, kPiecesY);
    // Ticks are whole multiples of the step, counted as integers: adding up the step would drift.
    for (auto i = std::llround(std::ceil(plot_.y_min / step_y - 1e-9));
         i * step_y <= plot_.y_max + 1e-9 * step_y; ++i) {
      const double at = y_(i * step_y);
      add(svg_, "<line x1=\"%g\" y1=\"%.2f\" x2=\"%g\" y2=\"%.2f\" stroke=\"%s\"/>\n", kLeftEdge, at,
          kRightEdge, at, i == 0 ? "#a9b2bc" : kGrid);
      add(svg_, "<text class=\"tick\" x=\"%g\" y=\"%.2f\" text-anchor=\"end\" fill=\"%s\">%s</text>\n",
          kLeftEdge - 10, at + 5, kMuted, tick_label(i * step_y, step_y).c_str());
    }
    for (auto i = std::llround(std::ceil(plot_.x_min / step_x - 1e-9));
         i * step_x <= plot_.x_max + 1e-9 * step_x; ++i) {
      const double at = x_(i * step_x);
      add(svg_, "<line x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\" stroke=\"%s\"/>\n", at, kBottomEdge, at,
          kBottomEdge + 6, kMuted);
      add(svg_, "<text class=\"tick\" x=\"%.2f\" y=\"%g\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n", at,
          kBottomEdge + 24, kMuted, tick_label(i * step_x, step_x).c_str());
    }
    add(svg_, "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", kLeftEdge,
        kTopEdge, kBottomEdge, kRightEdge, kMuted);
    add(svg_, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\" font-style=\"italic\">%s</text>\n",
        (kLeftEdge + kRightEdge) / 2, kBottomEdge + 48, escaped(plot_.x_label).c_str());
    add(svg_, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\" font-style=\"italic\">%s</text>\n", kLeftEdge - 10,
        kTopEdge + 5, escaped(plot_.y_label).c_str());
  }

  void draw(const Curve& curve) {
    add(svg_,
        "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-linejoin=\"round\"%s points=\"",
        curve.colour.c_str(), curve.width, curve.dashed ? kDashes : "");
    for (Eigen::Index i = 0; i < curve.x.size(); ++i) {
      add(svg_, "%s%.2f,%.2f", i == 0 ? "" : " ", x_(curve.x[i]), y_(curve.y[i]));
    }
    add(svg_, "\"/>\n");
  }

  void draw(const Dots& dots) {
    add(svg_, "<g fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"%.2f\">\n", dots.colour.c_str(),
        dots.radius / 4);
    for (Eigen::Index i = 0; i < dots.x.size(); ++i) {
      // Left out instead of clipped: a dot on the border shall be round.
      if (dots.x[i] < plot_.x_min || dots.x[i] > plot_.x_max) continue;
      if (dots.y[i] < plot_.y_min || dots.y[i] > plot_.y_max) continue;
      add(svg_, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"/>\n", x_(dots.x[i]), y_(dots.y[i]), dots.radius);
    }
    add(svg_, "</g>\n");
  }

  static constexpr char kDashes[] = " stroke-dasharray=\"5 5\"";
  const Plot& plot_;
  Scale x_, y_;
  std::string svg_;
};

}  // namespace

std::string to_svg(const Plot& plot) { return Document(plot).text(); }

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw std::system_error(errno, std::generic_category(), "writing " + path);
}

}  // namespace fit
