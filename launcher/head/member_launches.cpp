#include "launcher/head/member_launches.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "launcher/job/host_name.h"
#include "launcher/node/node_probe.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {
namespace {

// Then a head of a launch that is stopped is killed: its agent has given it up by then.
constexpr std::chrono::seconds kStoppedTime{5};

}  // namespace

MemberLaunches::MemberLaunches(EventLoop& loop, const JobSpec& spec, const Allocation& allocation,
                               const Environment& environment, const Notices& notices,
                               const MemberLaunch::Job& job, Handlers handlers)
    : loop_(loop),
      spec_(spec),
      allocation_(allocation),
      environment_(environment),
      notices_(notices),
      job_(job),
      handlers_(std::move(handlers)) {}

Result<int> MemberLaunches::start(const AllocatedNode& host, int num_slots, const std::vector<int>& slots,
                                  int generation, std::vector<RankPlacement> placements) {
  std::vector<int> labels;
  for (int slot = 0; slot < num_slots; ++slot) {
    const auto next = static_cast<int>(labels_.size());
    labels.push_back(labels_.emplace(std::pair(host_key(host.name), slot), next).first->second);
  }
  JobSpec spec = launch_spec(spec_, generation, slots, labels, std::move(placements));
  spec.requeue = requeue(host);
  Allocation allocation = allocation_;
  allocation.nodes = {host};
  allocation.nodes.front().slots = spec.num_ranks;
  for (const SchedulerJob& job : jobs_) {
    const SchedulerNode* const node = find_node(job, host.name);
    if (node == nullptr) continue;
    allocation.job = job;
    allocation.job->nodes = {*node};
    break;
  }
  const int id = next_++;
  const auto paused = handlers_.pause_threads();
  DDL_ASSIGN(head, MemberLaunch::start(
                       loop_, spec, allocation, environment_, notices_, job_,
                       {[this, id](const message::MemberReport& report) { handlers_.on_report(id, report); },
                        [this, id] { handlers_.on_gone(id); }}));
  launches_[id] = {host.name,
                   {},
                   std::move(head),
                   Launch::Phase::kRunning,
                   spec.requeue.job.empty() ? -1 : spec.requeue.turn};
  return id;
}

/// Without a place for the state the job would begin anew. The agent of this host is lost with it.
Requeue MemberLaunches::requeue(const AllocatedNode& host) const {
  const Scheduler& scheduler = scheduler_here(environment_);
  const std::string job = scheduler.job_id(environment_), own = scheduler.node_name(environment_);
  if (job.empty() || spec_.elastic.state_directory.empty()) return {};
  const std::string name = own.empty() ? hostname() : own;
  if (is_this_machine(host, name) || is_this_machine(host, hostname())) return {};
  return {scheduler.name(), job, name, turn_of(host.name)};
}

/// The least one that no other host has.
int MemberLaunches::turn_of(const std::string& host) const {
  std::set<int> taken;
  for (const auto& [id, launch] : launches_) {
    if (host_key(launch.host) == host_key(host)) return launch.turn;
    taken.insert(launch.turn);
  }
  int turn = 0;
  while (taken.contains(turn)) ++turn;
  return turn;
}

void MemberLaunches::add_member(int id, int slot, int member) {
  launches_.at(id).members[slot] = member;
  launch_of_[member] = id;
}

MemberLaunches::Launch* MemberLaunches::find(int id) {
  const auto launch = launches_.find(id);
  return launch == launches_.end() ? nullptr : &launch->second;
}

std::optional<int> MemberLaunches::member_of(int id, int slot) const {
  const auto& members = launches_.at(id).members;
  const auto found = members.find(slot);
  return found == members.end() ? std::nullopt : std::optional(found->second);
}

void MemberLaunches::send(int id, const message::MemberOrder& order) {
  if (Launch* const launch = find(id)) launch->head->send(order);
}

void MemberLaunches::send_all(const message::MemberOrder& order) {
  for (const auto& [id, launch] : launches_) launch.head->send(order);
}

void MemberLaunches::signal_all(int signal) {
  for (const auto& [id, launch] : launches_) launch.head->signal(signal);
}

bool MemberLaunches::is_any_stopped() const {
  return std::any_of(launches_.begin(), launches_.end(),
                     [](const auto& launch) { return launch.second.head->is_stopped(); });
}

void MemberLaunches::look_for_stopped() {
  if (!is_any_stopped()) return;
  stopped_timer_ = loop_.after(kStoppedTime, [this] {
    for (const auto& [id, launch] : launches_) {
      if (!launch.head->is_stopped()) continue;
      notices_.note(launch.host +
                    ": the process of ddlrun that had started its ranks was stopped, and is killed");
      launch.head->kill();
    }
  });
}

}  // namespace ddl::launcher
