#include "timeline/clock.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace ddl::timeline {
namespace {

using contract::ClockSample;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? kLeast : kGreatest;
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b > 0 ? kLeast : kGreatest;
}

/// from <= to; every difference of two numbers of 64 bits fits.
std::uint64_t distance(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

/// time * drift / 2^40, rounded down; |drift| < 2^31. In integers, so that a later time never gives less than time +
/// this did for an earlier one.
std::int64_t drifted(std::int64_t time, std::int64_t drift) {
  const std::int64_t high = time >> 32;
  const std::int64_t low = time & 0xFFFF'FFFF;
  return (high * drift + ((low * drift) >> 32)) >> 8;
}

/// part / whole of length, at most length; part <= whole, and whole is not 0.
std::uint64_t share(std::uint64_t length, std::uint64_t part, std::uint64_t whole) {
  const double exact = static_cast<double>(length) * (static_cast<double>(part) / static_cast<double>(whole));
  constexpr double kTwoTo64 = 18446744073709551616.0;
  const double nearest = std::round(exact);
  return nearest >= kTwoTo64 ? length : std::min(static_cast<std::uint64_t>(nearest), length);
}

}  // namespace

ClockMap::ClockMap(std::span<const ClockSample> samples) {
  for (const ClockSample& sample : samples) {
    if (sample.bound < 0 || (!points_.empty() && sample.at <= points_.back().own)) continue;
    // Two samples that are close to each other, and each a bit wrong, would turn the order of times around.
    const std::int64_t peer = add(sample.at, sample.offset);
    points_.push_back({sample.at, points_.empty() ? peer : std::max(peer, points_.back().peer)});
    bound_ = std::max(bound_, sample.bound);
  }
  if (points_.size() < 2) return;
  const auto own = static_cast<double>(distance(points_.front().own, points_.back().own));
  const auto peer = static_cast<double>(distance(points_.front().peer, points_.back().peer));
  // Two clocks drift apart by less: the kernel adjusts the rate of each by at most 500 ppm (adjtimex(2)). More is an
  // error of two samples that are close to each other.
  constexpr double kMaxDrift = 1e-3;
  const double drift = std::clamp((peer - own) / own, -kMaxDrift, kMaxDrift);
  drift_ = static_cast<std::int64_t>(drift * kDriftUnit);
}

std::int64_t ClockMap::to_peer(std::int64_t time) const {
  if (points_.empty()) return time;
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), time,
                       [](std::int64_t wanted, const Point& point) { return wanted < point.own; });
  if (after == points_.begin() || after == points_.end()) {
    const Point& edge = after == points_.begin() ? points_.front() : points_.back();
    const std::int64_t since = subtract(time, edge.own);
    return add(edge.peer, add(since, drifted(since, drift_)));
  }
  const Point& before = *(after - 1);
  const std::uint64_t since =
      share(distance(before.peer, after->peer), distance(before.own, time), distance(before.own, after->own));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(before.peer) + since);
}

std::int64_t Alignment::to_reference(std::int64_t time) const {
  if (!is_aligned()) return add(time, shift_);
  for (const auto& step : steps_) time = step->to_peer(time);
  return time;
}

std::int64_t Alignment::offset() const {
  if (steps_.empty()) return 0;
  const std::int64_t time = steps_.front()->latest();
  return subtract(to_reference(time), time);
}

double Alignment::drift_ppm() const {
  double sum = 0;
  for (const auto& step : steps_) sum += step->drift_ppm();
  return sum;
}

std::int64_t Alignment::bound() const {
  std::int64_t sum = 0;
  for (const auto& step : steps_) sum = add(sum, step->bound());
  return sum;
}

void HostClock::add(std::int32_t rank, const RingSnapshot& ring) {
  ranks.push_back(rank);
  if (peer < 0 && ring.clock_peer >= 0 && !ring.samples.empty()) {
    peer = ring.clock_peer;
    samples = ring.samples;
  }
  for (const contract::Event& event : ring.events) {
    if (earliest == 0 || event.begin < earliest) earliest = event.begin;
  }
}

JobClocks align_clocks(std::span<const HostClock> hosts) {
  JobClocks clocks;
  clocks.hosts.resize(hosts.size());
  std::map<std::int32_t, std::size_t> host_of;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const std::int32_t rank : hosts[i].ranks) host_of.emplace(rank, i);
  }
  const auto first = host_of.find(0);
  const std::size_t reference = first == host_of.end() ? 0 : first->second;

  std::vector<std::shared_ptr<const ClockMap>> maps(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) maps[i] = std::make_shared<const ClockMap>(hosts[i].samples);
  /// The maps from this host on; why there are none.
  const auto chain_from = [&](std::size_t start, std::string& reason) {
    std::vector<std::shared_ptr<const ClockMap>> steps;
    for (std::size_t host = start; host != reference;) {
      const std::string whose = host == start ? "its clock" : "a clock with which its own was compared";
      if (hosts[host].peer < 0 || maps[host]->samples() == 0) {
        reason = whose + " was not compared with that of another host";
      } else if (const auto next = host_of.find(hosts[host].peer); next == host_of.end()) {
        reason = whose + " was compared with that of rank " + std::to_string(hosts[host].peer) +
                 ", whose host is not known";
      } else if (steps.size() == hosts.size()) {
        reason = "its clock was compared in a circle that the host of rank 0 is not part of";
      } else {
        steps.push_back(maps[host]);
        host = next->second;
        continue;
      }
      steps.clear();
      return steps;
    }
    return steps;
  };

  bool has_origin = false;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::string reason;
    auto steps = chain_from(i, reason);
    if (!reason.empty()) {
      clocks.hosts[i] = Alignment(std::move(reason), 0);
      continue;
    }
    clocks.hosts[i] = Alignment(std::move(steps));
    if (hosts[i].earliest == 0) continue;
    const std::int64_t earliest = clocks.hosts[i].to_reference(hosts[i].earliest);
    clocks.origin = has_origin ? std::min(clocks.origin, earliest) : earliest;
    has_origin = true;
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (clocks.hosts[i].is_aligned() || hosts[i].earliest == 0) continue;
    clocks.hosts[i] = Alignment(clocks.hosts[i].reason(), subtract(clocks.origin, hosts[i].earliest));
  }
  return clocks;
}

}  // namespace ddl::timeline
