#include "launcher/head/reports.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::launcher {
namespace {

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "CPU " : "CPUs ") + cpus.list(); }

void add_sentence(std::string& text, const std::string& sentence) {
  text += (text.empty() || sentence.empty() ? "" : "; ") + sentence;
}

template <class Gpu>
std::string bus_ids(const std::vector<Gpu>& gpus) {
  std::vector<std::string> texts;
  for (const Gpu& gpu : gpus) texts.push_back(gpu.bus_id.empty() ? gpu.uuid : gpu.bus_id);
  return join(texts, ",");
}

/// Parts of a GPU share all of its address but the last digit.
std::string_view place_of(std::string_view bus_id) { return bus_id.substr(0, bus_id.find('.')); }

/// Whether a rank sees the GPUs that the plan gives it, and those alone. What the plan does not know is not compared.
bool are_planned(const std::vector<SeenGpu>& seen, const std::vector<affinity::AssignedGpu>& planned) {
  return std::equal(seen.begin(), seen.end(), planned.begin(), planned.end(),
                    [](const SeenGpu& gpu, const affinity::AssignedGpu& plan) {
                      const bool is_instance = plan.uuid.starts_with("MIG-") && gpu.uuid.starts_with("MIG-");
                      return (plan.bus_id.empty() || place_of(gpu.bus_id) == place_of(plan.bus_id)) &&
                             (!is_instance || gpu.uuid == plan.uuid);
                    });
}

std::string reason_text(int error) {
  if (error == 0) return "";
  if (error == EINVAL)
    return ": not all of them may be used there (is the cgroup or the Slurm step narrower?)";
  const std::string reason = ": " + std::generic_category().message(error);
  return error == EPERM ? reason + " (a container may forbid it)" : reason;
}

}  // namespace

BindingReport::BindingReport(const LaunchPlan& plan, const std::vector<NodeBinding>& bindings) {
  for (int i = 0; i < std::ssize(plan.nodes); ++i) {
    const NodeLaunch& node = plan.nodes[i];
    for (const RankLaunch& rank : node.ranks) {
      Planned& planned = ranks_[rank.rank];
      planned = {plan.job.node_names.at(node.node_index), rank.cpus, rank.memory_nodes, {}};
      const int local = rank.local_rank;
      if (i < std::ssize(bindings) && local < std::ssize(bindings[i].plan.ranks))
        planned.gpus = visible_gpus(bindings[i], local);
      if (i < std::ssize(bindings) && bindings[i].shares_view_of_gpus) planned.own = local;
      // As the agent asks for them.
      const auto vendor = vendor_of_gpus(rank.environment);
      if (vendor && *vendor != affinity::GpuVendor::kIntel) without_gpus_.insert(rank.rank);
    }
  }
}

const BindingReport::Planned* BindingReport::planned(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second;
}

std::vector<PlannedRank> BindingReport::all_planned() const {
  std::vector<PlannedRank> all;
  for (const auto& [rank, planned] : ranks_) {
    PlannedRank& one = all.emplace_back();
    one.cpus = planned.cpus.list();
    for (const affinity::AssignedGpu& gpu : planned.gpus) one.gpus.push_back(gpu.index);
  }
  return all;
}

std::vector<std::string> BindingReport::add(const message::RankBound& bound) {
  const Planned* const plan = planned(bound.rank);
  BoundRank& rank = bound_[bound.rank];
  rank.planned = plan == nullptr ? CpuSet() : plan->cpus;
  rank.kernel = bound.binding;
  add_sentence(rank.difference, difference(bound));
  lines_[bound.rank] = line(bound);
  return lines_if_complete();
}

std::vector<std::string> BindingReport::add(const message::VisibleGpus& visible) {
  BoundRank& rank = bound_[visible.rank];
  if (visible.is_known) rank.gpus = visible.gpus;
  add_sentence(rank.difference, difference(visible));
  gpu_texts_[visible.rank] = gpus_text(visible);
  without_gpus_.erase(visible.rank);
  return lines_if_complete();
}

std::vector<std::string> BindingReport::lines_if_complete() {
  return lines_.size() < ranks_.size() || !without_gpus_.empty() ? std::vector<std::string>() : take();
}

std::vector<std::string> BindingReport::take() {
  std::vector<std::string> lines;
  for (const auto& [rank, text] : lines_) lines.push_back(text + gpu_texts_[rank]);
  lines_.clear();
  return lines;
}

std::string BindingReport::line(const message::RankBound& bound) const {
  const Planned* const plan = planned(bound.rank);
  std::string text = fmt::format("rank {} on {}: ", bound.rank, plan == nullptr ? "?" : plan->host);
  if (bound.binding.cpus.is_empty()) return text + "it ended before its binding could be read";
  text += cpus_text(bound.binding.cpus);
  if (plan != nullptr && plan->cpus.is_empty()) {
    text += " (not bound)";
  } else if (plan != nullptr) {
    text += plan->cpus == bound.binding.cpus ? " as planned" : " (planned: " + plan->cpus.list() + ")";
  }
  if (!bound.binding.memory.empty()) text += ", memory " + bound.binding.memory;
  if (!bound.binding.devices.empty()) text += ", " + bound.binding.devices;
  return text;
}

std::string BindingReport::gpus_text(const message::VisibleGpus& visible) const {
  if (!visible.is_known) return visible.failure.empty() ? "" : ", its GPUs are not known: " + visible.failure;
  std::vector<std::string> texts;
  for (const SeenGpu& gpu : visible.gpus)
    texts.push_back((gpu.uuid.empty() ? "a GPU" : gpu.uuid) + " at " + gpu.bus_id);
  const Planned* const plan = planned(visible.rank);
  if (plan != nullptr && plan->own && are_planned(visible.gpus, plan->gpus))
    return fmt::format(", {} as planned, index {} of the {} that it sees", texts[*plan->own], *plan->own,
                       texts.size());
  std::string text = ", " + (texts.empty() ? "no GPU" : join(texts, ", "));
  if (plan == nullptr) return text;
  return text +
         (are_planned(visible.gpus, plan->gpus) ? " as planned" : " (planned: " + bus_ids(plan->gpus) + ")");
}

std::string BindingReport::difference(const message::VisibleGpus& visible) const {
  const Planned* const plan = planned(visible.rank);
  if (plan == nullptr || !visible.is_known || are_planned(visible.gpus, plan->gpus)) return "";
  const std::string text = fmt::format("rank {} on {} sees ", visible.rank, plan->host);
  const std::string wanted = ", but GPU " + bus_ids(plan->gpus) + " was planned: ";
  if (visible.gpus.empty())
    return text + "no GPU" + wanted + "is it hidden by another variable of visible devices, or by a cgroup?";
  return text + "GPU " + bus_ids(visible.gpus) + wanted +
         "does its environment set another variable of visible devices, or CUDA_DEVICE_ORDER?";
}

std::string BindingReport::difference(const message::RankBound& bound) const {
  const Planned* const plan = planned(bound.rank);
  if (plan == nullptr) return "";
  const std::string who = fmt::format("rank {} on {}", bound.rank, plan->host);
  if (bound.cpu_error != 0) {
    return fmt::format("{} could not be bound to {}{}", who, cpus_text(plan->cpus),
                       reason_text(bound.cpu_error));
  }
  if (bound.memory_error != 0) {
    return fmt::format("{} could not be given memory of NUMA nodes {}{}", who,
                       CpuSet::of(plan->memory_nodes).list(), reason_text(bound.memory_error));
  }
  if (!plan->cpus.is_empty() && !bound.binding.cpus.is_empty() && bound.binding.cpus != plan->cpus) {
    return fmt::format("{} may run on {}, but {} was planned: something has changed its binding", who,
                       bound.binding.cpus.list(), plan->cpus.list());
  }
  return "";
}

std::string agent_sentence(const std::string& name, const NodeFacts& facts, double answer_seconds) {
  return fmt::format("{}: agent {} on {}, {} on {}, {}, answered after {:.3f} s", name, facts.agent_pid,
                     facts.hostname, counted(facts.allowed_cpus, "CPU"), counted(facts.allowed_cores, "core"),
                     facts.kernel, answer_seconds);
}

BindingNotes binding_notes(const NodeBinding& binding, bool may_share) {
  BindingNotes said;
  if (!binding.unbound_because.empty())
    said.details.push_back("ranks are not bound: " + binding.unbound_because);
  if (!binding.other_view_because.empty()) said.notes.push_back(binding.other_view_because);
  for (const std::string& warning : binding.plan.warnings) {
    if (may_share) said.details.push_back(warning);
    if (!may_share) said.notes.push_back("warning: " + warning + " (--oversubscribe: it is meant)");
  }
  return said;
}

std::vector<std::string> reduced_limit_notes(
    const ResourceLimits& soft, const std::vector<std::pair<std::string, ResourceLimits>>& hosts) {
  std::map<std::string, std::vector<std::string>> reduced_on;
  for (const auto& [name, hard] : hosts) {
    if (const std::string reduced = reduced_limits(soft, hard); !reduced.empty())
      reduced_on[reduced].push_back(name);
  }
  std::vector<std::string> notes;
  for (auto& [reduced, names] : reduced_on) {
    constexpr std::size_t kMaxNames = 8;
    const std::size_t all = names.size();
    names.resize(std::min(all, kMaxNames));
    const std::string others = all > kMaxNames ? " and " + counted(all - kMaxNames, "other host") : "";
    notes.push_back("ranks on " + join(names, ", ") + others + " have the soft limits " + reduced +
                    " as in this shell: the hard limits there (ulimit -H) do not allow more");
  }
  return notes;
}

std::optional<message::HostLost> lost_host(const std::vector<RankOutcome>& ranks,
                                           const std::vector<int>& rank_nodes, int node,
                                           const std::string& why) {
  std::vector<int> there;
  for (const RankOutcome& rank : ranks) {
    if (rank_nodes.at(rank.rank) == node) there.push_back(rank.rank);
  }
  if (there.empty()) return std::nullopt;
  const RankOutcome& first = ranks.at(there.front());
  return message::HostLost{first.host, first.rank, first.pid,
                           fmt::format("ddlrun has lost {}, where {} {} ran: {}", first.host,
                                       there.size() == 1 ? "rank" : "ranks", list_of_numbers(there), why)};
}

std::string mpi_warning(const MpiOnHost& first, const MpiOnHost& other) {
  const auto file_name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  if (first.first.bytes == other.first.bytes && file_name(first.first.path) == file_name(other.first.path))
    return "";
  const auto text = [](const MpiOnHost& one) {
    const auto& [mpi, host] = one;
    return fmt::format("rank {} on {} has loaded {} ({} bytes)", mpi.rank, host, mpi.path, mpi.bytes);
  };
  return fmt::format(
      "warning: {}, and {}, which is another MPI or another version: ranks with different ones wait for each "
      "other for ever, or fail; start all of them in the same environment (PATH, LD_LIBRARY_PATH, modules)",
      text(first), text(other));
}

void StartTimes::on_agents_ready(const std::string& slowest, double seconds, double connect_seconds) {
  agents_ready_ = Clock::now();
  slowest_ = slowest;
  slowest_seconds_ = seconds;
  connect_seconds_ = connect_seconds;
}

void StartTimes::on_launched(int num_ranks) {
  launched_ = Clock::now();
  num_ranks_ = num_ranks;
}

std::vector<StartPhase> StartTimes::phases() const {
  std::vector<StartPhase> phases;
  const auto add = [&](const char* name, const std::optional<Clock::time_point>& when) {
    if (when) phases.push_back({name, std::chrono::duration<double>(*when - begun_).count()});
  };
  add("agents ready", agents_ready_);
  add("launched", launched_);
  add("all ranks started", all_started_);
  add("all ranks initialised", all_initialised_);
  add("first collective done", first_collective_);
  return phases;
}

std::string StartTimes::text() const {
  const auto after = [this](Clock::time_point when) {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(when - begun_).count());
  };
  std::string text = "start-up: ";
  if (!agents_ready_) return text + "no agent was ready";
  text += fmt::format("agents ready after {} (slowest {}: {:.3f} s", after(*agents_ready_), slowest_,
                      slowest_seconds_);
  if (connect_seconds_ > 0) text += fmt::format(", of which ssh {:.3f} s", connect_seconds_);
  text += ")";
  if (launched_) text += ", launched after " + after(*launched_);
  if (all_started_) text += ", all ranks started after " + after(*all_started_);
  if (all_initialised_) {
    text += ", all initialised after " + after(*all_initialised_);
  } else if (all_started_) {
    text += initialised_ == 0 ? ", no rank was a PMIx client" : fmt::format(", {} initialised", initialised_);
  }
  if (first_collective_) text += ", first collective done after " + after(*first_collective_);
  return text;
}

}  // namespace ddl::launcher
