// Times of different hosts on one axis. The ranks of a host share CLOCK_MONOTONIC, which counts from the host's start
// and runs at a rate of its own. One rank of each host has compared it with the clock of a rank elsewhere
// (contract::ClockRecord), which may itself be compared with a third: a chain to the host of rank 0, whose clock is the
// reference. All of it is pure, and gets numbers that a rank may have made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contract/event_ring.h"
#include "timeline/event_ring.h"

namespace ddl::timeline {

/// From one clock to another. Between two samples the offset changes in proportion to the time; before the first one
/// and after the last one it changes as it does from the first to the last, at most by 1000 ppm. With one sample it is
/// constant. Times stay in order. Whatever does not fit into 64 bits becomes the least or the greatest number.
class ClockMap {
 public:
  /// Samples that are not later than the one before them, or have a negative bound, are not used.
  explicit ClockMap(std::span<const contract::ClockSample> samples);

  /// Number of samples that are used. If there are none, the clocks are the same.
  std::size_t samples() const { return points_.size(); }
  std::int64_t to_peer(std::int64_t time) const;
  /// When the clocks were compared last; 0 if there are no samples.
  std::int64_t latest() const { return points_.empty() ? 0 : points_.back().own; }
  /// How much faster the other clock runs, in parts of a million; 0 with one sample.
  double drift_ppm() const { return static_cast<double>(drift_) / kDriftUnit * 1e6; }
  /// Greatest bound of the samples, in nanoseconds.
  std::int64_t bound() const { return bound_; }

 private:
  /// The same moment on both clocks.
  struct Point {
    std::int64_t own;
    std::int64_t peer;
  };
  std::vector<Point> points_;  // both clocks in order
  static constexpr double kDriftUnit = std::int64_t{1} << 40;
  std::int64_t drift_ = 0;  // 1 / kDriftUnit
  std::int64_t bound_ = 0;
};

/// From the clock of one host to the reference.
class Alignment {
 public:
  /// The reference itself.
  Alignment() = default;
  /// Through other clocks to the reference: the first map is from the host's own clock, and none is empty.
  explicit Alignment(std::vector<std::shared_ptr<const ClockMap>> steps) : steps_(std::move(steps)) {}
  /// Not known, for this reason. shift: what is added to times, so that they lie beside those of other hosts.
  Alignment(std::string reason, std::int64_t shift) : reason_(std::move(reason)), shift_(shift) {}

  bool is_aligned() const { return reason_.empty(); }
  /// A clause: "its clock was not compared with that of another host"; "" if the clock is aligned.
  const std::string& reason() const { return reason_; }
  std::int64_t to_reference(std::int64_t time) const;

  // Of an aligned clock.

  /// The reference minus the host's clock, when that was compared last. In nanoseconds.
  std::int64_t offset() const;
  /// How much faster the reference runs, in parts of a million.
  double drift_ppm() const;
  /// Times are at most so wrong, in nanoseconds: the bounds of all steps added.
  std::int64_t bound() const;
  /// By which the host's own clock was compared; 0 for the reference.
  std::size_t samples() const { return steps_.empty() ? 0 : steps_.front()->samples(); }

 private:
  std::vector<std::shared_ptr<const ClockMap>> steps_;
  std::string reason_;
  std::int64_t shift_ = 0;
};

/// What the ranks of one host say about its clock.
struct HostClock {
  std::vector<std::int32_t> ranks;  ///< of the job, that run on this host
  std::int32_t peer = -1;           ///< the rank of another host whose clock was compared; -1: none
  std::vector<contract::ClockSample> samples;
  std::int64_t earliest = 0;  ///< when the first of its ranks' events began, by this clock; 0: there are none

  /// Adds what this rank says. Of several that have compared clocks, the first one counts.
  void add(std::int32_t rank, const RingSnapshot& ring);
};

/// The clocks of a job.
struct JobClocks {
  std::vector<Alignment> hosts;  ///< in the order of the hosts
  /// When the first of all events began, by the reference: the zero of a trace.
  std::int64_t origin = 0;
};

/// The reference is the clock of the host of rank 0, or of the first host if none has rank 0. A clock that cannot be
/// aligned is shifted so that its earliest event is at the origin.
JobClocks align_clocks(std::span<const HostClock> hosts);

}  // namespace ddl::timeline
