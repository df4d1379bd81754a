// The hosts of an elastic job whose ranks go on when others fail: which there are, where processes are started, and which
// of their processes are to leave.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/elastic/cooldown.h"
#include "launcher/elastic/host_discovery.h"
#include "launcher/elastic/host_pool.h"
#include "launcher/elastic/membership.h"
#include "launcher/head/member_launches.h"
#include "launcher/head/run_job.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/job/rank_placement.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// One thread. Which processes are ranks is decided elsewhere: here they become members, and members that leave.
class ContinuedHosts {
 public:
  using Launch = MemberLaunches::Launch;
  using Clock = std::chrono::steady_clock;
  struct Handlers {
    std::function<void()> on_changed;               ///< there may be other hosts now, or fewer
    std::function<void(const Error&)> on_no_hosts;  ///< the first run of the discovery script has failed
    /// A process is started.
    std::function<void(int launch, int slot, const std::string& host)> on_added;
  };
  /// All but cooldown and handlers outlive it.
  ContinuedHosts(const JobSpec& spec, const Allocation& allocation, const Notices& notices,
                 const Cooldown& cooldown, Membership& membership, MemberLaunches& launches,
                 Handlers handlers);

  /// Finds out which hosts there are, until close(). on_changed follows.
  void open(EventLoop& loop);
  void close() { discovery_.reset(); }

  HostPool& pool() { return pool_; }
  /// When there may be a host that is not used now; nullopt: never.
  std::optional<HostPool::Time> next_chance(HostPool::Time now) const;

  /// In all slots that are free, as far as the job has room for processes.
  void start_launches();
  /// A process on it has failed, and it counts as a whole.
  void leave(const std::string& host);
  /// Ends processes that are to leave, and are no ranks any more.
  void end_leaving(Launch& launch);
  /// One whose ranks have all ended has its last output to write, and needs no signal.
  void end_processes(Launch& launch);
  void end_member(int member);
  /// "its ranks leave at the next commit".
  const char* when_leaving() const;

 private:
  void on_hosts(const DiscoveredHosts& found);
  void on_discovery_failed(const Error& error);
  int slots_of(const AllocatedNode& host) const;
  bool has_room_to_begin(Clock::time_point now) const;
  void start_all_launches(Clock::time_point now);
  void start_launch(const AllocatedNode& host, const std::vector<int>& slots,
                    const std::vector<RankPlacement>& places = {});

  const JobSpec& spec_;
  const Allocation& allocation_;
  const Notices& notices_;
  Membership& membership_;
  MemberLaunches& launches_;
  Handlers handlers_;
  HostPool pool_;
  std::optional<HostDiscovery> discovery_;
  bool is_discovered_ = false;
  bool was_discovery_noted_ = false;
  std::set<int> unlisted_;  ///< members that leave because the discovery script does not list their slot
};

}  // namespace ddl::launcher
