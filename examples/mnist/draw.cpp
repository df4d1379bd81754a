#include <algorithm>
#include <cmath>
#include <random>

#include "digits.h"

namespace mnist {
namespace {

struct Point {
  double x = 0.0, y = 0.0;  // in a square from -1 to 1, y downwards
};

/// The strokes of each digit, as polygons whose corners are listed one after the other.
const std::vector<std::vector<Point>>& strokes_of(std::size_t digit) {
  static const std::vector<std::vector<Point>> kStrokes[kClasses] = {
      {{{-.5, -.9}, {.5, -.9}, {.7, 0}, {.5, .9}, {-.5, .9}, {-.7, 0}, {-.5, -.9}}},
      {{{-.4, -.5}, {0, -.9}, {0, .9}}, {{-.4, .9}, {.4, .9}}},
      {{{-.6, -.6}, {-.3, -.9}, {.4, -.9}, {.6, -.5}, {-.6, .9}, {.6, .9}}},
      {{{-.6, -.9}, {.6, -.9}, {0, -.2}, {.6, .3}, {.4, .9}, {-.6, .9}}},
      {{{.3, .9}, {.3, -.9}, {-.6, .3}, {.7, .3}}},
      {{{.6, -.9}, {-.5, -.9}, {-.6, -.1}, {.3, -.2}, {.6, .3}, {.3, .9}, {-.6, .9}}},
      {{{.5, -.9}, {-.3, -.6}, {-.6, .2}, {-.4, .9}, {.4, .9}, {.6, .4}, {.3, 0}, {-.6, .2}}},
      {{{-.6, -.9}, {.6, -.9}, {-.1, .9}}, {{-.3, 0}, {.5, 0}}},
      {{{0, -.1}, {-.5, -.5}, {0, -.9}, {.5, -.5}, {0, -.1}, {-.6, .5}, {0, .9}, {.6, .5}, {0, -.1}}},
      {{{.6, -.3}, {0, 0}, {-.6, -.4}, {-.3, -.9}, {.4, -.9}, {.6, -.3}, {.4, .9}}},
  };
  return kStrokes[digit];
}

/// In [0, 1). std::uniform_real_distribution differs between standard libraries, the engine does not.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

double distance(Point p, Point a, Point b) {
  const double x = b.x - a.x, y = b.y - a.y;
  const double along = std::clamp(((p.x - a.x) * x + (p.y - a.y) * y) / (x * x + y * y), 0.0, 1.0);
  return std::hypot(p.x - a.x - along * x, p.y - a.y - along * y);
}

void draw(std::size_t digit, std::mt19937_64& engine, std::uint8_t* pixels) {
  const auto around_zero = [&](double range) { return range * (2 * uniform(engine) - 1); };
  const double turn = around_zero(0.25), shear = around_zero(0.25), size = 0.68 + around_zero(0.12);
  const Point shift{around_zero(0.15), around_zero(0.15)};
  const double pen = 0.09 + 0.05 * uniform(engine);
  // The image is a square from -1 to 1, too.
  const auto moved = [&](Point p) {
    const double x = size * (0.8 * p.x + shear * p.y), y = size * p.y;
    return Point{std::cos(turn) * x - std::sin(turn) * y + shift.x,
                 std::sin(turn) * x + std::cos(turn) * y + shift.y};
  };
  std::vector<std::pair<Point, Point>> lines;
  for (const std::vector<Point>& stroke : strokes_of(digit)) {
    for (std::size_t i = 0; i + 1 < stroke.size(); ++i)
      lines.emplace_back(moved(stroke[i]), moved(stroke[i + 1]));
  }
  constexpr double kPixel = 2.0 / kSide;
  for (std::size_t i = 0; i < kPixels; ++i) {
    const std::size_t row = i / kSide, column = i % kSide;
    const Point center{(static_cast<double>(column) + 0.5) * kPixel - 1,
                       (static_cast<double>(row) + 0.5) * kPixel - 1};
    double nearest = 2.0;
    for (const auto& [from, to] : lines) nearest = std::min(nearest, distance(center, from, to));
    const double ink = std::clamp((pen - nearest) / kPixel + 0.5, 0.0, 1.0);
    // Four uniform numbers together are nearly normal.
    double noise = -2.0;
    for (int n = 0; n < 4; ++n) noise += uniform(engine);
    pixels[i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(ink + 0.3 * noise, 0.0, 1.0)));
  }
}

}  // namespace

Digits draw_digits(std::uint64_t count, std::uint64_t seed) {
  Digits digits;
  digits.pixels.resize(count * kPixels);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value & 0xFFFF'FFFFU); };
    std::seed_seq both{low(seed), low(seed >> 32), low(i), low(i >> 32)};
    std::mt19937_64 engine(both);
    const auto digit = static_cast<std::uint8_t>(engine() % kClasses);
    digits.labels.push_back(digit);
    draw(digit, engine, digits.pixels.data() + i * kPixels);
  }
  return digits;
}

}  // namespace mnist
