#include "timeline/clock.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "support/catch.h"

using ddl::contract::ClockSample;
using ddl::timeline::align_clocks;
using ddl::timeline::ClockMap;
using ddl::timeline::HostClock;
using ddl::timeline::JobClocks;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// A clock that is ahead of another one, and faster.
struct SkewedClock {
  std::int64_t ahead;
  double faster_ppm;
  std::int64_t at(std::int64_t time) const {
    return time + ahead + std::llround(static_cast<double>(time) * faster_ppm * 1e-6);
  }
};

HostClock host_of(std::vector<std::int32_t> ranks, std::int32_t peer = -1,
                  std::vector<ClockSample> samples = {}, std::int64_t earliest = 0) {
  return {std::move(ranks), peer, std::move(samples), earliest};
}

}  // namespace

TEST_CASE("an offset of seconds and a drift of 100 ppm are recovered within the bound") {
  std::mt19937 random(3);
  constexpr std::int64_t kBound = 40'000;
  std::uniform_int_distribution<std::int64_t> error(-kBound, kBound);
  for (const double ppm : {100.0, -100.0, 0.0}) {
    const SkewedClock peer{-37 * kSecond, ppm};
    std::vector<ClockSample> samples;
    for (int i = 1; i <= 60; ++i) {
      const std::int64_t at = 1000 * kSecond + i * 10 * kSecond;
      samples.push_back({at, peer.at(at) - at + error(random), kBound});
    }
    const ClockMap map(samples);
    CHECK(map.samples() == 60);
    CHECK(map.bound() == kBound);
    CHECK(map.drift_ppm() == Approx(ppm).margin(0.2));  // 2 * 40 us in 590 s
    for (std::int64_t at = samples.front().at; at <= samples.back().at; at += kSecond / 3)
      REQUIRE(std::abs(map.to_peer(at) - peer.at(at)) <= kBound + 1);
    // A minute outside, the error of the slope is added: 80 us in 590 s.
    for (const std::int64_t at : {samples.front().at - 60 * kSecond, samples.back().at + 60 * kSecond})
      CHECK(std::abs(map.to_peer(at) - peer.at(at)) <= kBound + 10'000);
  }
}

TEST_CASE("one sample is a constant offset, and none are the same clock") {
  const std::vector<ClockSample> one{{1000, 50, 7}};
  const ClockMap map(one);
  CHECK(map.to_peer(0) == 50);
  CHECK(map.to_peer(kSecond) == kSecond + 50);
  CHECK(map.drift_ppm() == 0);
  CHECK(map.bound() == 7);
  const ClockMap none{std::vector<ClockSample>{}};
  CHECK(none.samples() == 0);
  CHECK(none.to_peer(123) == 123);
}

TEST_CASE("between two samples the offset changes in proportion") {
  const ClockMap map(std::vector<ClockSample>{{0, 0, 1}, {1'000'000, 100, 3}, {2'000'000, 0, 2}});
  CHECK(map.to_peer(500'000) == 500'050);
  CHECK(map.to_peer(1'000'000) == 1'000'100);
  CHECK(map.to_peer(1'500'000) == 1'500'050);
  CHECK(map.bound() == 3);
}

TEST_CASE("samples that contradict each other do not turn the order of times around") {
  // 10 us apart, and 60 us wrong.
  const ClockMap map(std::vector<ClockSample>{{100'000, 60'000, 60'000}, {110'000, 0, 60'000}});
  std::int64_t last = kMin;
  for (std::int64_t at = 0; at < 300'000; at += 100) {
    CHECK(map.to_peer(at) >= last);
    last = map.to_peer(at);
  }
  CHECK(std::abs(map.drift_ppm()) <= 1000);
}

TEST_CASE("a clock map takes any numbers") {
  std::mt19937_64 random(5);
  const std::vector<std::int64_t> extremes{kMin, kMin + 1, -1, 0, 1, kMax - 1, kMax};
  const auto any = [&] {
    return random() % 2 == 0 ? extremes[random() % extremes.size()] : static_cast<std::int64_t>(random());
  };
  for (int i = 0; i < 5000; ++i) {
    std::vector<ClockSample> samples(random() % 5);
    for (auto& sample : samples) sample = {any(), any(), any()};
    const ClockMap map(samples);
    CHECK(map.samples() <= samples.size());
    CHECK(map.bound() >= 0);
    CHECK(std::abs(map.drift_ppm()) <= 1000);
    std::vector<std::int64_t> times = extremes;
    for (int k = 0; k < 5; ++k) times.push_back(any());
    std::sort(times.begin(), times.end());
    for (std::size_t k = 1; k < times.size(); ++k)
      REQUIRE(map.to_peer(times[k - 1]) <= map.to_peer(times[k]));
  }
  const ClockMap map(std::vector<ClockSample>{{5, 1, 1}, {5, 2, 1}, {4, 3, 1}, {9, 4, -1}, {10, 1, 2}});
  CHECK(map.samples() == 2);
}

TEST_CASE("clocks that are compared in a chain are aligned with that of rank 0") {
  // Host c is compared with b, and b with a, which is not the first in the list.
  const SkewedClock b_to_a{100 * kSecond, 50};
  const SkewedClock c_to_b{-3000 * kSecond, -20};
  const auto samples = [](const SkewedClock& peer, std::int64_t bound) {
    std::vector<ClockSample> made;
    for (std::int64_t at = 4000 * kSecond; at <= 4100 * kSecond; at += 10 * kSecond)
      made.push_back({at, peer.at(at) - at, bound});
    return made;
  };
  const std::vector<HostClock> hosts{host_of({4, 5}, 3, samples(c_to_b, 20'000), 4050 * kSecond),
                                     host_of({0, 1}, -1, {}, 1200 * kSecond),
                                     host_of({2, 3}, 0, samples(b_to_a, 30'000), 4050 * kSecond)};
  const JobClocks clocks = align_clocks(hosts);
  REQUIRE(clocks.hosts.size() == 3);
  for (const auto& host : clocks.hosts) CHECK(host.is_aligned());
  CHECK(clocks.hosts[1].to_reference(77) == 77);
  CHECK(clocks.hosts[1].samples() == 0);
  const std::int64_t time = 4042 * kSecond + 123;
  CHECK(std::abs(clocks.hosts[0].to_reference(time) - b_to_a.at(c_to_b.at(time))) <= 2);
  CHECK(clocks.hosts[0].bound() == 50'000);
  CHECK(clocks.hosts[0].drift_ppm() == Approx(30).margin(0.01));
  CHECK(clocks.hosts[0].samples() == 11);
  const std::int64_t latest = 4100 * kSecond;
  CHECK(std::abs(clocks.hosts[0].offset() - (b_to_a.at(c_to_b.at(latest)) - latest)) <= 2);
  CHECK(clocks.origin == clocks.hosts[0].to_reference(4050 * kSecond));
}

TEST_CASE("a clock that cannot be aligned is shifted to the origin, with the reason") {
  const std::vector<ClockSample> samples{{10, 5, 1}};
  const std::vector<HostClock> hosts{host_of({0}, -1, {}, 1000),    host_of({1}, -1, {}, 700),
                                     host_of({2}, 3, samples, 50),  host_of({3}, 2, samples, 60),
                                     host_of({4}, 99, samples, 60), host_of({5}, 1, samples, 60),
                                     host_of({6}, 0, {}, 60),       host_of({7}, 0, samples)};
  const JobClocks clocks = align_clocks(hosts);
  CHECK(clocks.origin == 1000);
  const auto reason_of = [&](std::size_t host) { return clocks.hosts[host].reason(); };
  CHECK(reason_of(1) == "its clock was not compared with that of another host");
  CHECK(reason_of(2) == "its clock was compared in a circle that the host of rank 0 is not part of");
  CHECK_FALSE(clocks.hosts[3].is_aligned());
  CHECK(reason_of(4) == "its clock was compared with that of rank 99, whose host is not known");
  CHECK(reason_of(5) == "a clock with which its own was compared was not compared with that of another host");
  CHECK(reason_of(6) == reason_of(1));
  CHECK(clocks.hosts[7].is_aligned());
  CHECK(clocks.hosts[1].to_reference(700) == 1000);
  CHECK(clocks.hosts[1].to_reference(750) == 1050);
  CHECK(clocks.hosts[1].to_reference(kMin) <= clocks.hosts[1].to_reference(kMax));
}

TEST_CASE("without rank 0 the first host is the reference, and without hosts there is nothing") {
  CHECK(align_clocks({}).hosts.empty());
  const std::vector<HostClock> hosts{host_of({7}, -1, {}, 40), host_of({8}, 7, {{0, 10, 1}}, 20)};
  const JobClocks clocks = align_clocks(hosts);
  CHECK(clocks.hosts[0].is_aligned());
  CHECK(clocks.hosts[1].to_reference(20) == 30);
  CHECK(clocks.origin == 30);
}

TEST_CASE("a host's clock is what the first of its ranks with samples says") {
  ddl::timeline::RingSnapshot ring;
  HostClock host;
  ring.events.resize(2);
  ring.events[0].begin = 90;
  ring.events[1].begin = 80;
  host.add(4, ring);
  ring.clock_peer = 0;
  ring.samples = {{1, 2, 3}};
  ring.events[0].begin = 85;
  host.add(5, ring);
  ring.clock_peer = 1;
  host.add(6, ring);
  CHECK(host.ranks == std::vector<std::int32_t>{4, 5, 6});
  CHECK(host.peer == 0);
  CHECK(host.samples == ring.samples);
  CHECK(host.earliest == 80);
}
