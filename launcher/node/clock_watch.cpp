#include "launcher/node/clock_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

constexpr std::chrono::seconds kFirstLook{1}, kLooksApart{60};
constexpr std::size_t kMaxCpuinfo = 16 << 20;  // of a thousand CPUs it has a megabyte and a half

/// As the driver of the CPU's clock states it, in hertz; nullopt: there is no such driver, as in virtual machines.
std::optional<double> driver_clock(const std::string& root, int cpu) {
  constexpr double kKilohertz = 1e3;
  const auto text =
      read_file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq");
  const auto number = text ? parse_integer(trim(*text)) : std::nullopt;
  if (!number || *number <= 0) return std::nullopt;
  return kKilohertz * static_cast<double>(*number);
}

}  // namespace

std::map<int, double> parse_clocks(std::string_view cpuinfo) {
  constexpr double kMegahertz = 1e6;
  std::map<int, double> clocks;
  int cpu = -1;
  for (const std::string_view line : split(cpuinfo, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view field = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (field == "processor") {
      const auto number = parse_integer(value);
      cpu = number && *number >= 0 && *number < kMaxCpuNumbers ? static_cast<int>(*number) : -1;
    } else if (field == "cpu MHz" && cpu >= 0) {
      if (const auto clock = parse_number(value); clock && *clock > 0) clocks[cpu] = kMegahertz * *clock;
    }
  }
  return clocks;
}

ClockWatch::ClockWatch(EventLoop& loop, std::string root) : loop_(loop), root_(std::move(root)) {}

void ClockWatch::add(const RankLaunch& rank) {
  if (rank.cpus.is_empty()) return;
  const bool is_first = ranks_.empty();
  ranks_[rank.rank] = {rank.cpus};
  if (!is_first) return;
  pause_ = kFirstLook;
  timer_ = loop_.after(pause_, [this] { look(); });
}

std::int64_t ClockWatch::hertz(int rank) const {
  const auto known = ranks_.find(rank);
  if (known == ranks_.end() || known->second.looks == 0) return -1;
  return std::llround(known->second.sum / known->second.looks);
}

void ClockWatch::end(int rank) {
  ranks_.erase(rank);
  if (ranks_.empty()) timer_.cancel();
}

void ClockWatch::look() {
  std::optional<std::map<int, double>> others;  // of CPUs without a driver
  for (auto& [number, rank] : ranks_) {
    double fastest = 0;
    for (const int cpu : rank.cpus.cpus()) {
      if (const auto clock = driver_clock(root_, cpu)) {
        fastest = std::max(fastest, *clock);
        continue;
      }
      if (!others) others = parse_clocks(read_file(root_ + "/proc/cpuinfo", kMaxCpuinfo).value_or(""));
      const auto known = others->find(cpu);
      if (known != others->end()) fastest = std::max(fastest, known->second);
    }
    if (fastest <= 0) continue;
    rank.sum += fastest;
    ++rank.looks;
  }
  pause_ = std::min(2 * pause_, kLooksApart);
  timer_ = loop_.after(pause_, [this] { look(); });
}

}  // namespace ddl::launcher
