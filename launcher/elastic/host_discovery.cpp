#include "launcher/elastic/host_discovery.h"

#include <filesystem>
#include <unordered_set>
#include <utility>

#include "base/command_output.h"
#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

constexpr auto kScriptPause = std::chrono::seconds(1);
constexpr auto kSlurmPause = std::chrono::seconds(10);
constexpr auto kLimit = std::chrono::seconds(10);
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

constexpr std::string_view kSlurmPrefix = "slurm:";

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Result<DiscoveredHosts> hosts_of(const Result<CommandOutput>& output, const std::string& source,
                                 std::optional<int> slots) {
  const bool is_slurm = slurm_jobs_of(source).has_value();
  if (!output)
    return refuse("--host-discovery-script: " + output.error().message(),
                  output.error().code() == ErrorCode::kPermissionDenied && !is_slurm && !is_folder(source)
                      ? "make it executable: chmod +x " + source
                      : "");
  if (output->wait_status != 0)
    return refuse((is_slurm ? "squeue" : source) + " (--host-discovery-script) " + how_it_failed(*output),
                  is_slurm ? "slurm:NAME needs a Slurm whose controller answers on this machine" : "");
  if (is_slurm) {
    DDL_ASSIGN(jobs, parse_slurm_jobs(output->out));
    return hosts_of_jobs(std::move(jobs), slots);
  }
  DDL_ASSIGN(hosts, parse_discovered_hosts(output->out, source, slots));
  return DiscoveredHosts{std::move(hosts), {}};
}

}  // namespace

Result<std::vector<AllocatedNode>> parse_discovered_hosts(std::string_view text, const std::string& script,
                                                          std::optional<int> slots) {
  std::vector<AllocatedNode> hosts;
  std::unordered_set<std::string> keys;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line.substr(0, line.find('#'))).empty()) continue;
    auto nodes = parse_hostfile(line, script);
    // Once more, behind as many empty lines: then the message has the right number.
    if (!nodes) return parse_hostfile(std::string(number - 1, '\n') + std::string(line), script);
    for (AllocatedNode& node : *nodes) {
      const std::string where = script + ":" + std::to_string(number) + ": " + node.name;
      if (!keys.insert(host_key(node.name)).second) return refuse(where + " is there twice");
      if (!node.slots) node.slots = slots;
      if (!node.slots)
        return refuse(where + " has no slots",
                      "let the script print " + node.name + ":N, or give --slots-per-host N");
      hosts.push_back(std::move(node));
    }
    if (hosts.size() > kMaxHosts)
      return refuse(script + " prints more than " + std::to_string(kMaxHosts) + " hosts");
  }
  return hosts;
}

Result<DiscoveredHosts> hosts_of_jobs(std::vector<SchedulerJob> jobs, std::optional<int> slots) {
  DiscoveredHosts found;
  std::unordered_set<std::string> keys;
  for (const SchedulerJob& job : jobs) {
    for (const SchedulerNode& node : job.nodes) {
      if (!keys.insert(host_key(node.name)).second) continue;
      if (!slots && node.gpus == 0)
        return refuse(node.name + " (--host-discovery-script) has no GPUs, and so no known number of slots",
                      "give --slots-per-host N");
      AllocatedNode host;
      host.name = node.name;
      host.slots = slots.value_or(node.gpus);
      found.hosts.push_back(std::move(host));
    }
  }
  found.jobs = std::move(jobs);
  return found;
}

std::optional<std::string> slurm_jobs_of(const std::string& discovery) {
  if (!discovery.starts_with(kSlurmPrefix)) return std::nullopt;
  return discovery.substr(kSlurmPrefix.size());
}

HostDiscovery::HostDiscovery(EventLoop& loop, const JobSpec& spec, Handlers handlers)
    : loop_(loop),
      source_(spec.elastic.discovery),
      slots_(spec.ranks_per_node > 0 ? spec.ranks_per_node : spec.elastic.slots_per_host),
      handlers_(std::move(handlers)) {
  start();
}

void HostDiscovery::start() {
  Command command;
  if (const auto name = slurm_jobs_of(source_)) {
    command = squeue_of_jobs(*name);
  } else {
    command.argv = {source_};
  }
  run_.emplace(loop_, command, kLimit, kMaxBytes,
               [this](const Result<CommandOutput>& output) { on_end(output); });
}

void HostDiscovery::on_end(const Result<CommandOutput>& output) {
  const auto hosts = hosts_of(output, source_, slots_);
  run_.reset();
  timer_ = loop_.after(slurm_jobs_of(source_) ? kSlurmPause : kScriptPause, [this] { start(); });
  hosts ? handlers_.on_hosts(*hosts) : handlers_.on_failure(hosts.error());
}

}  // namespace ddl::launcher
