#include "launcher/elastic/generation_planner.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

/// Whether another start can help.
enum class Remedy { kNone, kRestart, kOtherHosts };

Remedy remedy_for(const JobReport& report) {
  switch (report.reason) {
    case EndReason::kSuccess:
    case EndReason::kTimeout:
    case EndReason::kSignal:
    case EndReason::kDrained:
    case EndReason::kOutputLost: return Remedy::kNone;
    case EndReason::kHostLost:
    case EndReason::kHostsChanged: return Remedy::kOtherHosts;
    // A command that cannot be executed, ranks that find no place.
    case EndReason::kStartFailed: return report.failed_hosts.empty() ? Remedy::kNone : Remedy::kOtherHosts;
    case EndReason::kRankFailed:
    case EndReason::kAborted:
    case EndReason::kStalled:
    case EndReason::kPortTaken:
    case EndReason::kRankStopped: return Remedy::kRestart;
  }
  return Remedy::kNone;
}

const AllocatedNode* find(const std::vector<AllocatedNode>& hosts, const std::string& name) {
  const auto found =
      std::find_if(hosts.begin(), hosts.end(),
                   [key = host_key(name)](const AllocatedNode& one) { return host_key(one.name) == key; });
  return found == hosts.end() ? nullptr : &*found;
}

/// How many ranks the host takes, as place() counts; nullopt: that is known only when its agent has answered, or there is
/// no limit. with_spare: also those that would only use its spare slots.
std::optional<int> capacity(const JobSpec& spec, const AllocatedNode& host, bool with_spare = false) {
  if (spec.ranks_per_node > 0) return spec.ranks_per_node;
  if (spec.oversubscribe) return host.max_slots;
  if (!host.slots || !with_spare) return host.slots;
  return std::max(*host.slots, host.spare_slots.value_or(0));
}

/// The first hosts that take this many ranks together, or all.
Generation fill(const JobSpec& spec, const std::vector<AllocatedNode>& hosts, int wanted, bool with_spare) {
  Generation generation;
  bool has_unknown = false;
  for (const AllocatedNode& host : hosts) {
    const int max_hosts = spec.elastic.max_hosts;
    if (max_hosts > 0 && std::ssize(generation.hosts) >= max_hosts) break;
    // Where a host may take any number, place() shares them out.
    if (generation.num_ranks >= wanted && !has_unknown) break;
    const auto takes = capacity(spec, host, with_spare);
    has_unknown |= !takes;
    generation.num_ranks += std::min(takes.value_or(wanted), wanted - generation.num_ranks);
    generation.hosts.push_back(host);
  }
  return generation;
}

}  // namespace

std::optional<Generation> plan_generation(const JobSpec& spec, const std::vector<AllocatedNode>& hosts,
                                          int required) {
  Generation generation = fill(spec, hosts, spec.elastic.max_ranks, false);
  if (generation.num_ranks < required) generation = fill(spec, hosts, required, true);
  if (generation.num_ranks < required || std::ssize(generation.hosts) < spec.elastic.min_hosts)
    return std::nullopt;
  return generation;
}

void limit_to_first_generation(JobSpec& spec, std::vector<AllocatedNode>& hosts) {
  if (spec.elastic.mode == ElasticMode::kOff) return;
  if (auto first = plan_generation(spec, hosts, spec.elastic.start_ranks)) {
    spec.num_ranks = first->num_ranks;
    hosts = std::move(first->hosts);
  }
  if (spec.elastic.mode == ElasticMode::kRestart) return;
  spec.framework = spec.serves_gloo ? Framework::kHorovod : Framework::kNone;
  spec.stdin_target = StdinTarget::kNone;
}

GenerationPlanner::GenerationPlanner(const JobSpec& spec, const std::vector<AllocatedNode>& hosts,
                                     std::function<double()> random)
    : spec_(spec),
      pool_({spec.elastic.cooldown_min_seconds, spec.elastic.cooldown_max_seconds, std::move(random)}) {
  pool_.update(hosts, Time());
}

void GenerationPlanner::on_ended(const JobReport& report, Time now) {
  const ElasticSpec& elastic = spec_.elastic;
  for (const std::string& host : report.failed_hosts) pool_.on_failed(host, now);
  const Remedy remedy = remedy_for(report);
  have_ranks_run_ |= report.reason != EndReason::kStartFailed;
  if (remedy == Remedy::kNone) {
    end_ = End{};
  } else if (remedy == Remedy::kRestart && next_number_.restarts >= elastic.max_restarts) {
    end_ = End{elastic.max_restarts == 0 ? ""
                                         : "the ranks were started again as often as --max-restarts " +
                                               std::to_string(elastic.max_restarts) + " allows"};
  } else if (elastic.reset_limit > 0 && next_number_.generation >= elastic.reset_limit) {
    end_ = End{"the ranks were started again as often as --reset-limit " +
               std::to_string(elastic.reset_limit) + " allows"};
  }
  ++next_number_.generation;
  if (remedy == Remedy::kRestart) ++next_number_.restarts;
}

GenerationPlanner::Decision GenerationPlanner::next(Time now) {
  if (end_) return *end_;
  const ElasticSpec& elastic = spec_.elastic;
  const int required = required_ranks();
  const auto usable = pool_.usable(now);
  if (auto planned = plan_generation(spec_, usable, required)) {
    waiting_since_.reset();
    planned->number = next_number_;
    running_ = *std::move(planned);
    return Start{*running_};
  }
  if (!waiting_since_) waiting_since_ = now;
  const Time limit = *waiting_since_ + clock_duration(elastic.timeout_seconds);
  const auto next_return = pool_.next_return(now);
  const std::string have = (usable.empty() ? "no host" : counted(usable.size(), "host")) +
                           " can be used now, and " + counted(required, "rank") +
                           (elastic.min_hosts > 1 ? " on " + counted(elastic.min_hosts, "host") : "") +
                           (required == 1 ? " is needed" : " are needed");
  if (now >= limit)
    return End{have + "; that was waited for " + std::to_string(static_cast<long>(elastic.timeout_seconds)) +
               " s (--elastic-timeout)"};
  // Nobody waits for a host whose name may be mistyped.
  const bool may_return = next_return && *next_return <= limit && have_ranks_run_;
  if (elastic.discovery.empty() && !may_return) return End{have};
  return Wait{next_return ? std::min(*next_return, limit) : limit, have};
}

std::string GenerationPlanner::reason_to_leave() const {
  if (!running_) return "";
  const auto there = pool_.listed();
  int ranks = 0;
  for (const AllocatedNode& host : running_->hosts) {
    const AllocatedNode* const listed = find(there, host.name);
    if (listed == nullptr) return host.name + " is not a host of the job any more";
    const int others = running_->num_ranks - ranks;
    const int placed = std::min(capacity(spec_, host, true).value_or(others), others);
    ranks += placed;
    if (capacity(spec_, *listed, true).value_or(placed) < placed)
      return host.name + " has fewer slots now, and " + counted(placed, "rank") +
             (placed == 1 ? " runs there" : " run there");
  }
  return "";
}

std::optional<GenerationPlanner::Growth> GenerationPlanner::growth(Time now) const {
  if (!running_) return std::nullopt;
  const auto planned = plan_generation(spec_, pool_.usable(now), spec_.elastic.min_ranks);
  if (!planned || planned->num_ranks <= running_->num_ranks) return std::nullopt;
  Growth growth;
  std::vector<std::string> names;
  for (const AllocatedNode& host : planned->hosts) {
    if (find(running_->hosts, host.name) != nullptr) continue;
    growth.hosts.push_back(host);
    names.push_back(host.name);
  }
  growth.why = names.empty() ? "there are more slots now"
                             : join(names, ", ") + (names.size() == 1 ? " joins the job" : " join the job");
  return growth;
}

}  // namespace ddl::launcher
