#include "report/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/svg.h"
#include "base/text.h"
#include "report/chart_style.h"

namespace ddl::report {
namespace {

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

struct ByteUnit {
  const char* name;
  double bytes;
};

ByteUnit unit_of(double bytes) {
  constexpr double kMebibyte = 1024.0 * 1024, kGibibyte = 1024 * kMebibyte;
  return bytes < kGibibyte ? ByteUnit{"MiB", kMebibyte} : ByteUnit{"GiB", kGibibyte};
}

/// How long rows have waited for columns.
struct Waits {
  std::vector<std::string> names;
  std::map<std::pair<std::size_t, std::size_t>, double> seconds;
  std::string what = "rank";
  bool is_mean = false;
};

Waits waits_of_ranks(const launcher::JobReport& report) {
  Waits waits;
  for (const launcher::RankOutcome& rank : report.ranks) waits.names.push_back(fmt::format("{}", rank.rank));
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const launcher::RankOutcome& rank = report.ranks[i];
    for (const launcher::AwaitedRank& one : rank.calls.awaited) {
      const auto awaited = static_cast<std::size_t>(one.rank);
      if (awaited < report.ranks.size()) waits.seconds[{i, awaited}] += lost_share(rank) * one.seconds;
    }
  }
  return waits;
}

/// Of the ranks of a host the mean. Hosts stand in the order of their first ranks.
Waits waits_of_hosts(const launcher::JobReport& report) {
  Waits waits;
  waits.what = "host";
  waits.is_mean = true;
  std::map<std::string_view, std::size_t> index;
  std::vector<std::size_t> host_of;
  std::vector<double> ranks;
  for (const launcher::RankOutcome& rank : report.ranks) {
    const auto [found, is_new] = index.try_emplace(rank.host, index.size());
    if (is_new) {
      waits.names.push_back(rank.host);
      ranks.push_back(0);
    }
    host_of.push_back(found->second);
    ++ranks[found->second];
  }
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const launcher::RankOutcome& rank = report.ranks[i];
    for (const launcher::AwaitedRank& one : rank.calls.awaited) {
      const auto awaited = static_cast<std::size_t>(one.rank);
      if (awaited >= host_of.size()) continue;
      waits.seconds[{host_of[i], host_of[awaited]}] += lost_share(rank) * one.seconds / ranks[host_of[i]];
    }
  }
  return waits;
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
  const Waits waits = report.ranks.size() <= kMaxRows ? waits_of_ranks(report) : waits_of_hosts(report);
  const std::size_t count = waits.names.size();
  double most = 0;
  for (const auto& [cell, seconds] : waits.seconds) most = std::max(most, seconds);
  if (count < 2 || count > kMaxRows || most <= 0) return "";
  // One path for each of a few shades is shorter than an element for each cell.
  constexpr int kShades = 5;
  constexpr double kLeft = 46, kTop = 46;
  const double size = std::clamp(420.0 / static_cast<double>(count), 8.0, 34.0);
  std::array<std::string, kShades> cells;
  SvgCanvas canvas;
  const auto at = [&](double start, std::size_t index) { return start + size * static_cast<double>(index); };
  const double end = size * static_cast<double>(count);
  canvas.rectangle({kLeft, kTop}, end, end, {.stroke = kGrid});
  for (const auto& [cell, seconds] : waits.seconds) {
    const int shade = static_cast<int>(std::ceil(seconds / most * kShades)) - 1;
    if (shade < 0 || seconds < most / 100) continue;
    cells[static_cast<std::size_t>(std::min(shade, kShades - 1))] +=
        fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", at(kLeft, cell.second) + 1,
                    at(kTop, cell.first) + 1, size - 2, size - 2, size - 2);
  }
  for (int shade = 0; shade < kShades; ++shade) {
    const std::string& path = cells[static_cast<std::size_t>(shade)];
    if (!path.empty()) canvas.path(path, {.fill = kWait, .opacity = (shade + 1.0) / kShades});
  }
  // Every number where there is room, otherwise some.
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(20 / size)));
  for (std::size_t i = 0; i < count; i += every) {
    canvas.text({at(kLeft, i) + size / 2, kTop - 6}, fmt::format("{}", i), label("middle", kText, 11));
    canvas.text({kLeft - 6, at(kTop, i) + size / 2 + 4}, fmt::format("{}", i), label("end", kText, 11));
  }
  canvas.text({kLeft, 14}, "… waited for this " + waits.what, label("start", kFaint));
  std::string caption = fmt::format("Rows: the {} that waited. Full colour: {:.3g} s{}.", waits.what, most,
                                    waits.is_mean ? ", the mean of its ranks" : "");
  if (waits.is_mean)
    caption += fmt::format(" {} is 0, {} is {}.", shortened(waits.names.front(), 20),
                           shortened(waits.names.back(), 20), count - 1);
  canvas.text({0, kTop + end + 18}, caption, label("start", kFaint));
  return canvas.in_page(std::max(kLeft + end + 8, waits.is_mean ? 640.0 : 360.0), kTop + end + 26,
                        "Who waited for whom");
}

std::string speedup_chart(const ScalingResult& result) {
  if (result.points.empty()) return "";
  constexpr double kLeft = 46, kTop = 12, kHeight = 280, kRight = 570, kLineHeight = 16;
  const ScalingKind kind = result.kind;
  const int base = result.points.front().scaling.base_ranks;
  const double most = result.points.back().growth();
  // A speed-up of half is the lowest that is drawn, on a scale on which each mark doubles.
  const double width = std::max(std::log2(most), 1.0), height = std::max(std::log2(most) + 1, 2.0);
  const auto x = [&](double growth) { return kLeft + (kRight - kLeft) * std::log2(growth) / width; };
  const auto y = [&](double speedup) {
    return kTop + kHeight - kHeight * std::log2(std::max(speedup, 0.5) * 2) / height;
  };
  SvgCanvas canvas;
  for (int doublings = -1; doublings <= height - 1 + 0.001; ++doublings) {
    const double mark = std::exp2(doublings);
    canvas.line({kLeft, y(mark)}, {kRight, y(mark)}, {.stroke = kGrid});
    canvas.text({kLeft - 6, y(mark) + 4}, fmt::format("{:g}", mark), label("end", kFaint));
  }
  for (const ScalingPoint& point : result.points) {
    const double at = x(point.growth());
    canvas.line({at, kTop}, {at, kTop + kHeight}, {.stroke = kGrid});
    canvas.text({at, kTop + kHeight + 16}, fmt::format("{}", point.scaling.ranks), label("middle", kFaint));
  }
  canvas.text({(kLeft + kRight) / 2, kTop + kHeight + 34}, "ranks", label("middle", kFaint));
  canvas.line({x(1), y(1)}, {x(most), y(most)}, {.stroke = kFaint, .dashes = "2 4"});
  // The texts at the right end are in the order of their lines, and do not cover each other.
  double text = kTop - 4;
  const auto name_line = [&](double at, const std::string& name) {
    text = std::max(at + 4, text + kLineHeight);
    canvas.text({kRight + 10, text}, name, label());
  };
  std::vector<std::pair<double, std::string>> names{{most, "ideal"}};
  if (result.fit) {
    std::vector<SvgPoint> line;
    constexpr int kPieces = 40;
    for (int piece = 0; piece <= kPieces; ++piece) {
      const double growth = std::pow(most, static_cast<double>(piece) / kPieces);
      line.push_back({x(growth), y(result.fit->speedup(kind, growth))});
    }
    canvas.polyline(line, {.stroke = kMove, .stroke_width = 2, .dashes = "7 4"});
    names.emplace_back(result.fit->speedup(kind, most),
                       fmt::format("{}, {} serial", result.law(), percent_text(result.fit->serial_share)));
  }
  std::vector<SvgPoint> line;
  for (const ScalingPoint& point : result.points) {
    const double speedup = point.speedup(kind), at = x(point.growth());
    canvas.begin_titled(
        fmt::format("{} ranks: {:.3g} times as fast as {}", point.scaling.ranks, speedup, base));
    canvas.line({at, y(speedup * point.scaling.seconds / point.slowest)},
                {at, y(speedup * point.scaling.seconds / point.fastest)},
                {.stroke = kCompute, .stroke_width = 2});
    canvas.circle({at, y(speedup)}, 4.5, {.fill = kCompute});
    canvas.end_titled();
    line.push_back({at, y(speedup)});
  }
  canvas.polyline(line, {.stroke = kCompute, .stroke_width = 2.5});
  names.emplace_back(result.points.back().speedup(kind),
                     fmt::format("measured, {:.2f}", result.points.back().speedup(kind)));
  std::ranges::stable_sort(names, std::ranges::greater(), &std::pair<double, std::string>::first);
  for (const auto& [speedup, name] : names) name_line(y(speedup), name);
  return canvas.in_page(kWidth, kTop + kHeight + 42, "Speed-up over the number of ranks");
}

std::string sizes_chart(const ScalingResult& result) {
  if (std::ranges::none_of(result.points, [](const ScalingPoint& point) { return point.times.has_calls; }))
    return "";
  constexpr double kLeft = 130, kRow = 22, kBar = 16;
  SvgCanvas canvas;
  double y = 0;
  for (const ScalingPoint& point : result.points) {
    const RankTimes& mean = point.times.mean;
    canvas.text({kLeft - 8, y + kBar - 3}, counted(point.scaling.ranks, "rank"), label("end"));
    if (mean.run > 0) draw_times(canvas, {kLeft, y}, kBar, mean, (kWidth - kLeft) / mean.run);
    y += kRow;
  }
  return canvas.in_page(kWidth, y, "Where the time went, by the number of ranks");
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
