#include "launcher/head/reports.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::launcher {
namespace {

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "CPU " : "CPUs ") + cpus.list(); }

std::string reason_text(int error) {
  if (error == 0) return "";
  if (error == EINVAL)
    return ": not all of them may be used there (is the cgroup or the Slurm step narrower?)";
  const std::string reason = ": " + std::generic_category().message(error);
  return error == EPERM ? reason + " (a container may forbid it)" : reason;
}

}  // namespace

BindingReport::BindingReport(const LaunchPlan& plan) {
  for (const NodeLaunch& node : plan.nodes) {
    for (const RankLaunch& rank : node.ranks) {
      ranks_[rank.rank] = {node.node_names.at(static_cast<std::size_t>(node.node_index)), rank.cpus,
                           rank.memory_nodes};
    }
  }
}

const BindingReport::Planned* BindingReport::planned(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second;
}

std::vector<std::string> BindingReport::add(const message::RankBound& bound) {
  const Planned* const plan = planned(bound.rank);
  bound_[bound.rank] = {plan == nullptr ? CpuSet() : plan->cpus, bound.binding, difference(bound)};
  lines_[bound.rank] = line(bound);
  return lines_.size() < ranks_.size() ? std::vector<std::string>() : take();
}

std::vector<std::string> BindingReport::take() {
  std::vector<std::string> lines;
  for (auto& [rank, text] : lines_) lines.push_back(std::move(text));
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
