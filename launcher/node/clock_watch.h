// How fast the cores of a node's ranks are clocked while these run: a limit of power or temperature, or the choice of a
// governor, may slow down one node and with it the whole job.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/cpu_set.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

/// The clock of each CPU in hertz, by its number, from the text of /proc/cpuinfo (proc(5)). Empty on processors whose
/// clock is not there, as those of Arm. Pure.
std::map<int, double> parse_clocks(std::string_view cpuinfo);

/// Looks rarely: 1 s after the first rank was added, after twice that time, and so on, then every minute. On the loop's
/// thread.
class ClockWatch {
 public:
  /// root: the folder in place of "/", for tests.
  explicit ClockWatch(EventLoop& loop, std::string root = "");

  /// Its CPUs are looked at from now on, until end(). Nothing happens if it is not bound: then it is not known where it
  /// runs.
  void add(const RankLaunch& rank);
  /// The mean clock of the fastest of its CPUs so far, in hertz: others of them may be idle, and slow for that. Below 0:
  /// not known.
  std::int64_t hertz(int rank) const;
  void end(int rank);

 private:
  void look();

  struct Rank {
    CpuSet cpus;
    double sum = 0;  ///< of what was seen
    int looks = 0;
  };

  EventLoop& loop_;
  std::string root_;
  std::map<int, Rank> ranks_;
  EventLoop::Timer timer_;
  std::chrono::seconds pause_{};  ///< before the next look
};

}  // namespace ddl::launcher
