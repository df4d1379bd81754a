// The launches of an elastic job whose ranks go on when others fail: the hosts on which it has started processes, and
// which processes these are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/head/member_launch.h"

namespace ddl::launcher {

/// One thread.
class MemberLaunches {
 public:
  struct Launch {
    enum class Phase { kRunning, kEnding, kConcluded };
    std::string host;
    std::map<int, int> members;  ///< by slot: their numbers in Membership
    std::unique_ptr<MemberLaunch> head;
    Phase phase = Phase::kRunning;
    int turn = -1;  ///< Requeue::turn; -1: its agent does not ask
  };
  struct Handlers {
    std::function<void(int id, const message::MemberReport&)> on_report;
    std::function<void(int id)> on_gone;  ///< see MemberLaunch
    /// While what it returns lives, the process has one thread.
    std::function<std::shared_ptr<void>()> pause_threads;
  };
  /// All but handlers outlive it.
  MemberLaunches(EventLoop& loop, const JobSpec& spec, const Allocation& allocation,
                 const Environment& environment, const Notices& notices, const MemberLaunch::Job& job,
                 Handlers handlers);

  /// Jobs of a scheduler whose nodes are hosts: those launches are steps of these jobs.
  void set_jobs(std::vector<SchedulerJob> jobs) { jobs_ = std::move(jobs); }
  /// Starts processes in these slots of a host, of which it has num_slots; none is a member yet. placements:
  /// JobSpec::first_placements. Returns the number of the launch.
  Result<int> start(const AllocatedNode& host, int num_slots, const std::vector<int>& slots, int generation,
                    std::vector<RankPlacement> placements);
  void add_member(int id, int slot, int member);
  /// Nothing of it is left.
  void erase(int id) { launches_.erase(id); }

  bool is_empty() const { return launches_.empty(); }
  Launch& at(int id) { return launches_.at(id); }
  /// nullptr: nothing of it is left.
  Launch* find(int id);
  auto begin() { return launches_.begin(); }
  auto end() { return launches_.end(); }
  std::optional<int> member_of(int id, int slot) const;
  int launch_of(int member) const { return launch_of_.at(member); }

  /// Nothing if nothing of it is left.
  void send(int id, const message::MemberOrder& order);
  void send_all(const message::MemberOrder& order);
  void signal_all(int signal);
  /// A child process has changed its state: kills heads that stay stopped, with a note.
  void look_for_stopped();

 private:
  bool is_any_stopped() const;
  Requeue requeue(const AllocatedNode& host) const;
  int turn_of(const std::string& host) const;

  EventLoop& loop_;
  const JobSpec& spec_;
  const Allocation& allocation_;
  const Environment& environment_;
  const Notices& notices_;
  const MemberLaunch::Job& job_;
  Handlers handlers_;
  std::vector<SchedulerJob> jobs_;
  std::map<int, Launch> launches_;
  std::map<int, int> launch_of_;  ///< by member
  int next_ = 0;
  std::map<std::pair<std::string, int>, int> labels_;  ///< by host and slot: what stands before output
  EventLoop::Timer stopped_timer_;
};

}  // namespace ddl::launcher
