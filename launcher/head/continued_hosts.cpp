#include "launcher/head/continued_hosts.h"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/elastic.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {

ContinuedHosts::ContinuedHosts(const JobSpec& spec, const Allocation& allocation, const Notices& notices,
                               const Cooldown& cooldown, Membership& membership, MemberLaunches& launches,
                               Handlers handlers)
    : spec_(spec),
      allocation_(allocation),
      notices_(notices),
      membership_(membership),
      launches_(launches),
      handlers_(std::move(handlers)),
      pool_(cooldown) {}

void ContinuedHosts::open(EventLoop& loop) {
  if (spec_.elastic.discovery.empty()) {
    pool_.update(allocation_.nodes, Clock::now());
    return loop.post(handlers_.on_changed);
  }
  discovery_.emplace(loop, spec_,
                     HostDiscovery::Handlers{[this](const DiscoveredHosts& found) { on_hosts(found); },
                                             [this](const Error& error) { on_discovery_failed(error); }});
}

std::optional<HostPool::Time> ContinuedHosts::next_chance(HostPool::Time now) const {
  return discovery_ ? now : pool_.next_return(now);
}

void ContinuedHosts::on_hosts(const DiscoveredHosts& found) {
  const std::vector<AllocatedNode>& hosts = found.hosts;
  is_discovered_ = true;
  was_discovery_noted_ = false;
  launches_.set_jobs(found.jobs);
  pool_.update(hosts, Clock::now());
  for (auto& [id, launch] : launches_) {
    bool is_noted = false;
    const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const AllocatedNode& one) {
      return host_key(one.name) == host_key(launch.host);
    });
    const int slots = host == hosts.end() ? 0 : slots_of(*host);
    for (const auto& [slot, member] : launch.members) {
      if (slot < slots) {
        // It is listed again before its ranks have left.
        if (unlisted_.erase(member) > 0) membership_.set_staying(member);
      } else if (!membership_.is_leaving(member)) {
        unlisted_.insert(member);
        membership_.set_leaving(member);
        const bool is_rank = membership_.member(member).phase == Member::Phase::kRank;
        if (is_rank && !std::exchange(is_noted, true))
          notices_.note(fmt::format("{} {}: {}", launch.host,
                                    slots == 0 ? "is not listed any more" : "has fewer slots now",
                                    when_leaving()));
      }
    }
    end_leaving(launch);
  }
  handlers_.on_changed();
}

/// Horovod would learn of it by a message of Python's pickle, which ddlrun does not write.
const char* ContinuedHosts::when_leaving() const {
  return spec_.serves_gloo ? "its ranks leave when the next rank is lost"
                           : "its ranks leave at the next commit";
}

void ContinuedHosts::end_leaving(Launch& launch) {
  const auto is_done = [this](const auto& slot) { return membership_.may_end(slot.second); };
  if (std::all_of(launch.members.begin(), launch.members.end(), is_done)) return end_processes(launch);
  for (const auto& slot : launch.members) {
    if (is_done(slot)) end_member(slot.second);
  }
}

void ContinuedHosts::leave(const std::string& host) {
  pool_.on_failed(host, Clock::now());
  for (auto& [id, launch] : launches_) {
    if (host_key(launch.host) != host_key(host)) continue;
    for (const auto& [slot, member] : launch.members) membership_.set_leaving(member);
    end_leaving(launch);
  }
}

void ContinuedHosts::end_processes(Launch& launch) {
  const bool is_live = std::any_of(launch.members.begin(), launch.members.end(), [this](const auto& slot) {
    return membership_.member(slot.second).phase != Member::Phase::kEnded;
  });
  if (launch.phase != Launch::Phase::kRunning || !is_live) return;
  launch.phase = Launch::Phase::kEnding;
  launch.head->signal(SIGTERM);
}

void ContinuedHosts::on_discovery_failed(const Error& error) {
  if (!is_discovered_) return handlers_.on_no_hosts(error);
  if (!std::exchange(was_discovery_noted_, true))
    notices_.note(error.message() + "; the job keeps the hosts that it has");
}

int ContinuedHosts::slots_of(const AllocatedNode& host) const {
  if (spec_.ranks_per_node > 0) return spec_.ranks_per_node;
  const int slots = host.slots.value_or(spec_.num_ranks);
  if (!spec_.oversubscribe || !spec_.elastic.discovery.empty()) return slots;
  const int hosts = static_cast<int>(std::ssize(allocation_.nodes));
  const int share = (spec_.num_ranks + hosts - 1) / hosts;
  return std::max(slots, std::min(share, host.max_slots.value_or(share)));
}

void ContinuedHosts::start_launches() {
  const auto now = Clock::now();
  if (spec_.serves_gloo) return start_all_launches(now);
  if (!has_room_to_begin(now)) return;
  for (const AllocatedNode& host : pool_.usable(now)) {
    std::vector<int> slots = membership_.free_slots(host.name, slots_of(host), now);
    slots.resize(std::min<std::size_t>(slots.size(), membership_.room()));
    if (!slots.empty()) start_launch(host, slots);
  }
}

/// A program that does not join would do its work with too few ranks.
bool ContinuedHosts::has_room_to_begin(Clock::time_point now) const {
  if (membership_.generation() >= 0) return true;
  std::int64_t slots = 0;
  for (const AllocatedNode& host : pool_.usable(now)) slots += slots_of(host);
  return slots >= spec_.elastic.start_ranks;
}

/// Of programs of Horovod, which are told their places when they start.
void ContinuedHosts::start_all_launches(Clock::time_point now) {
  std::vector<std::pair<AllocatedNode, int>> hosts;  // with the number of ranks there
  std::vector<int> nodes;                            // by rank
  for (const AllocatedNode& host : pool_.usable(now)) {
    const int ranks = std::min(slots_of(host), membership_.room() - static_cast<int>(std::ssize(nodes)));
    if (ranks <= 0) continue;
    nodes.insert(nodes.end(), ranks, static_cast<int>(std::ssize(hosts)));
    hosts.emplace_back(host, ranks);
  }
  if (std::ssize(nodes) < spec_.elastic.start_ranks) return;
  const std::vector<RankPlacement> places = rank_placements(nodes);
  auto next = places.begin();
  for (const auto& [host, ranks] : hosts) {
    std::vector<int> slots(ranks);
    std::iota(slots.begin(), slots.end(), 0);
    start_launch(host, slots, {next, next + ranks});
    next += ranks;
  }
}

void ContinuedHosts::start_launch(const AllocatedNode& host, const std::vector<int>& slots,
                                  const std::vector<RankPlacement>& places) {
  const auto id = launches_.start(host, slots_of(host), slots, membership_.generation() + 1, places);
  if (!id) {
    notices_.note(fmt::format("{}: {}", host.name, id.error().message()));
    return pool_.on_failed(host.name, Clock::now());
  }
  for (const int slot : slots) {
    const int member = membership_.add(host.name, slot);
    launches_.add_member(*id, slot, member);
    handlers_.on_added(*id, slot, host.name);
    if (spec_.serves_gloo) membership_.on_joined(member, contract::JoinReason::kFirst, 0, Clock::now());
  }
  notices_.detail(fmt::format("starting {} on {}", counted(slots.size(), "process"), host.name));
}

void ContinuedHosts::end_member(int member) {
  launches_.send(launches_.launch_of(member), message::KillRank{membership_.member(member).slot});
}

}  // namespace ddl::launcher
