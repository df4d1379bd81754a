#include "report/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/svg.h"

namespace ddl::report {
namespace {

constexpr const char* kCompute = "var(--compute)";
constexpr const char* kWait = "var(--wait)";
constexpr const char* kMove = "var(--move)";
constexpr const char* kText = "var(--text)";
constexpr const char* kFaint = "var(--faint)";
constexpr const char* kGrid = "var(--grid)";
constexpr double kWidth = 830;

SvgText label(const char* anchor = "start", const char* fill = kText, double size = 12) {
  return {size, fill, anchor, false};
}

/// The three kinds of time from x on: full, hollow with a line through it, and half as high.
void draw_times(SvgCanvas& canvas, SvgPoint corner, double height, const RankTimes& times,
                double per_second) {
  double x = corner.x;
  const double compute = times.compute * per_second, wait = times.wait * per_second,
               move = times.move * per_second;
  if (compute > 0) canvas.rectangle({x, corner.y}, compute, height, {.fill = kCompute});
  x += compute;
  if (wait > 1) {
    canvas.rectangle({x + 0.5, corner.y + 0.5}, wait - 1, height - 1, {.stroke = kWait});
    canvas.line({x, corner.y + height / 2}, {x + wait, corner.y + height / 2},
                {.stroke = kWait, .stroke_width = height / 6});
  } else if (wait > 0) {
    canvas.rectangle({x, corner.y}, wait, height, {.fill = kWait});
  }
  x += wait;
  if (move > 0) canvas.rectangle({x, corner.y + height / 2}, move, height / 2, {.fill = kMove});
}

/// Ranks that are drawn as one row.
struct Block {
  std::string name;
  RankTimes mean;
};

std::vector<Block> blocks_of(const JobTimes& times, const std::vector<std::string>& hosts) {
  const std::size_t count = times.ranks.size();
  const std::size_t each = (count + kMaxRows - 1) / kMaxRows;
  std::vector<Block> blocks;
  for (std::size_t first = 0; first < count; first += std::max<std::size_t>(each, 1)) {
    const auto ranks = std::span(times.ranks).subspan(first, std::min(each, count - first));
    Block block;
    const std::size_t rank = static_cast<std::size_t>(ranks.front().rank);
    block.name = ranks.size() == 1 ? fmt::format("{}", rank) : fmt::format("{}-{}", rank, ranks.back().rank);
    if (ranks.size() == 1 && rank < hosts.size() && !hosts[rank].empty()) block.name += "  " + hosts[rank];
    for (const RankTimes& one : ranks) {
      block.mean.run += one.run / static_cast<double>(ranks.size());
      block.mean.compute += one.compute / static_cast<double>(ranks.size());
      block.mean.wait += one.wait / static_cast<double>(ranks.size());
      block.mean.move += one.move / static_cast<double>(ranks.size());
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "…";
}

struct ByteUnit {
  const char* name;
  double bytes;
};

ByteUnit unit_of(double bytes) {
  constexpr double kMebibyte = 1024.0 * 1024, kGibibyte = 1024 * kMebibyte;
  return bytes < kGibibyte ? ByteUnit{"MiB", kMebibyte} : ByteUnit{"GiB", kGibibyte};
}

/// A step of an axis for about this many of them up to the value: 1, 2 or 5 times a power of ten.
double axis_step(double value, int steps) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value / steps)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value / (factor * power) <= steps) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string shares_chart(const RankTimes& mean) {
  SvgCanvas canvas;
  const double run = mean.run > 0 ? mean.run : 1;
  draw_times(canvas, {0, 0}, 26, mean, kWidth / run);
  const std::array parts = {std::tuple{"compute", mean.compute, kCompute},
                            std::tuple{"wait", mean.wait, kWait}, std::tuple{"move", mean.move, kMove}};
  double x = 0;
  for (const auto& [name, seconds, colour] : parts) {
    canvas.circle({x + 5, 44}, 5, {.fill = colour});
    canvas.text({x + 16, 48}, fmt::format("{} {}", name, percent_text(seconds / run)), label());
    x += 140;
  }
  return canvas.in_page(kWidth, 56, "Where the time of the ranks went");
}

std::string ranks_chart(const JobTimes& times, const std::vector<std::string>& hosts) {
  if (times.ranks.empty()) return "";
  const std::vector<Block> blocks = blocks_of(times, hosts);
  constexpr double kLeft = 130, kRow = 16, kBar = 11, kTop = 4;
  double longest = 0;
  for (const RankTimes& one : times.ranks) longest = std::max(longest, one.run);
  const double per_second = (kWidth - kLeft - 8) / longest;
  const double bottom = kTop + kRow * static_cast<double>(blocks.size());
  SvgCanvas canvas;
  const double step = axis_step(longest, 6);
  for (int mark = 0; mark * step <= longest * 1.0001; ++mark) {
    const double second = mark * step;
    const double x = kLeft + second * per_second;
    canvas.line({x, kTop}, {x, bottom}, {.stroke = kGrid});
    canvas.text({x, bottom + 14}, fmt::format("{:g} s", second),
                label(mark == 0 ? "start" : "middle", kFaint));
  }
  double y = kTop;
  for (const Block& block : blocks) {
    canvas.begin_titled(fmt::format("{}: compute {:.3g} s, wait {:.3g} s, move {:.3g} s", block.name,
                                    block.mean.compute, block.mean.wait, block.mean.move));
    canvas.text({kLeft - 8, y + kBar - 1}, shortened(block.name, 20), label("end"));
    draw_times(canvas, {kLeft, y}, kBar, block.mean, per_second);
    canvas.end_titled();
    y += kRow;
  }
  return canvas.in_page(kWidth, bottom + 20, "The time of each rank");
}

std::string waits_chart(const launcher::JobReport& report) {
  const std::size_t count = report.ranks.size();
  if (count < 2 || count > kMaxRows) return "";
  double most = 0;
  for (const launcher::RankOutcome& rank : report.ranks) {
    const double lost = lost_share(rank);
    for (const launcher::AwaitedRank& one : rank.calls.awaited) most = std::max(most, lost * one.seconds);
  }
  if (most <= 0) return "";
  // One path for each of a few shades is shorter than an element for each cell.
  constexpr int kShades = 5;
  constexpr double kLeft = 46, kTop = 46;
  const double cell = std::clamp(420.0 / static_cast<double>(count), 8.0, 34.0);
  std::array<std::string, kShades> cells;
  SvgCanvas canvas;
  const auto at = [&](double start, int index) { return start + cell * index; };
  const double end = cell * static_cast<double>(count);
  canvas.rectangle({kLeft, kTop}, end, end, {.stroke = kGrid});
  for (const launcher::RankOutcome& rank : report.ranks) {
    const double lost = lost_share(rank);
    for (const launcher::AwaitedRank& one : rank.calls.awaited) {
      const double seconds = lost * one.seconds;
      const int shade = static_cast<int>(std::ceil(seconds / most * kShades)) - 1;
      if (shade < 0 || seconds < most / 100) continue;
      cells[static_cast<std::size_t>(std::min(shade, kShades - 1))] +=
          fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", at(kLeft, one.rank) + 1,
                      at(kTop, rank.rank) + 1, cell - 2, cell - 2, cell - 2);
    }
  }
  for (int shade = 0; shade < kShades; ++shade) {
    const std::string& path = cells[static_cast<std::size_t>(shade)];
    if (!path.empty()) canvas.path(path, {.fill = kWait, .opacity = (shade + 1.0) / kShades});
  }
  // Every number where there is room, otherwise some.
  const int every = std::max(1, static_cast<int>(std::ceil(20 / cell)));
  for (int rank = 0; rank < static_cast<int>(count); rank += every) {
    canvas.text({at(kLeft, rank) + cell / 2, kTop - 6}, fmt::format("{}", rank), label("middle", kText, 11));
    canvas.text({kLeft - 6, at(kTop, rank) + cell / 2 + 4}, fmt::format("{}", rank), label("end", kText, 11));
  }
  canvas.text({kLeft, 14}, "… waited for this rank", label("start", kFaint));
  canvas.text({0, kTop + end + 18}, fmt::format("Rows: the rank that waited. Full colour: {:.3g} s.", most),
              label("start", kFaint));
  return canvas.in_page(std::max(kLeft + end + 8, 360.0), kTop + end + 26, "Who waited for whom");
}

std::string memory_chart(const std::vector<double>& peaks) {
  if (peaks.empty()) return "";
  const std::size_t each = (peaks.size() + kMaxRows - 1) / kMaxRows;
  std::vector<double> bars;
  for (std::size_t first = 0; first < peaks.size(); first += each) {
    const auto block = std::span(peaks).subspan(first, std::min(each, peaks.size() - first));
    bars.push_back(*std::ranges::max_element(block));
  }
  constexpr double kLeft = 70, kTop = 14, kHeight = 110;
  const double top = std::max(*std::ranges::max_element(bars), 1.0);
  const ByteUnit unit = unit_of(top);
  const double step = axis_step(top / unit.bytes, 4);
  SvgCanvas canvas;
  const auto y = [&](double bytes) { return kTop + kHeight - kHeight * bytes / top; };
  for (int tick = 0; tick * step * unit.bytes <= top * 1.0001; ++tick) {
    const double mark = tick * step, at = y(mark * unit.bytes);
    canvas.line({kLeft, at}, {kWidth, at}, {.stroke = kGrid});
    canvas.text({kLeft - 6, at + 4}, fmt::format("{:g} {}", mark, unit.name), label("end", kFaint));
  }
  const double width = std::min((kWidth - kLeft) / static_cast<double>(bars.size()), 40.0);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    canvas.begin_titled(fmt::format("rank {}: {:.3g} {}", i * each, bars[i] / unit.bytes, unit.name));
    canvas.rectangle({kLeft + width * static_cast<double>(i) + 1, y(bars[i])}, width - 2,
                     kTop + kHeight - y(bars[i]), {.fill = kCompute});
    canvas.end_titled();
  }
  canvas.text({kLeft, kTop + kHeight + 16}, "by rank", label("start", kFaint));
  return canvas.in_page(kWidth, kTop + kHeight + 22, "The memory peak of each rank");
}

}  // namespace ddl::report
