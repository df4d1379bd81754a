// Where the time goes until a job is at work: what --verbose ends with.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ddl::launcher {

/// Collects moments; decides nothing. One thread.
class StartTimes {
 public:
  using Clock = std::chrono::steady_clock;

  StartTimes() : begun_(Clock::now()) {}

  /// Every agent has answered. slowest: the name of the one that took longest, so many seconds from its own start, of
  /// which connect_seconds went by before it greeted (ssh); 0: nobody connected.
  void on_agents_ready(const std::string& slowest, double seconds, double connect_seconds);
  void on_launched(int num_ranks);
  void on_rank_started() { count(started_, all_started_); }
  /// A rank has called PMIx_Init, by whatever library.
  void on_rank_initialised() { count(initialised_, all_initialised_); }
  /// libddl's first collective has ended.
  void on_first_collective() {
    if (!first_collective_) first_collective_ = Clock::now();
  }

  /// "start-up: agents ready after 0.312 s (slowest node3: 0.310 s, of which ssh 0.254 s), ..."; one sentence.
  std::string text() const;

 private:
  void count(int& so_far, std::optional<Clock::time_point>& all) {
    if (++so_far == num_ranks_) all = Clock::now();
  }

  Clock::time_point begun_;
  std::optional<Clock::time_point> agents_ready_;
  std::optional<Clock::time_point> launched_;
  std::optional<Clock::time_point> all_started_;
  std::optional<Clock::time_point> all_initialised_;
  std::optional<Clock::time_point> first_collective_;
  std::string slowest_;
  double slowest_seconds_ = 0;
  double connect_seconds_ = 0;
  int num_ranks_ = 0;
  int started_ = 0;
  int initialised_ = 0;
};

}  // namespace ddl::launcher
