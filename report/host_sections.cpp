// What the job has used of its hosts: networks, memory, CPUs and energy.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "report/charts.h"
#include "report/section.h"
#include "report/verdict.h"

namespace ddl::report {

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, kUnits.at(unit));
}

namespace {

using launcher::duration_text;
using launcher::RankOutcome;

std::string bytes_or_unknown(std::int64_t bytes) {
  if (bytes == std::numeric_limits<std::int64_t>::max()) return "none";
  return bytes < 0 ? "" : bytes_text(static_cast<double>(bytes));
}

Section memory(const JobRecord& record) {
  Section section("Memory");
  std::vector<double> peaks;
  std::map<std::string, double> by_host;
  for (const RankOutcome& rank : record.report.ranks) {
    if (rank.usage.peak_resident_bytes < 0) continue;
    peaks.push_back(static_cast<double>(rank.usage.peak_resident_bytes));
    by_host[rank.host] += peaks.back();
  }
  if (peaks.empty() && record.report.hosts.empty())
    return section.not_measured("no rank has ended in a way that its host could report");
  for (const RankOutcome& rank : record.report.ranks) {
    if (!rank.kill_explanation.empty())
      section.sentence(fmt::format("Rank {}: {}.", rank.rank, rank.kill_explanation));
  }
  section.draw(memory_chart(peaks));
  // The hosts that came nearest to their limit first.
  std::vector<const launcher::HostUsage*> hosts;
  for (const launcher::HostUsage& host : record.report.hosts) hosts.push_back(&host);
  std::ranges::stable_sort(hosts, std::ranges::greater(),
                           [](const launcher::HostUsage* host) { return host->usage.memory.peak; });
  std::vector<Section::Row> rows;
  for (const launcher::HostUsage* host : hosts) {
    if (rows.size() == kMostRows) break;
    const launcher::MemoryUse& memory = host->usage.memory;
    rows.push_back({host->host, memory.cgroup.empty() ? memory.unknown : memory.cgroup,
                    bytes_text(by_host[host->host]), bytes_or_unknown(memory.peak),
                    bytes_or_unknown(memory.limit),
                    memory.oom_kills < 0 ? "" : fmt::format("{}", memory.oom_kills)});
  }
  if (rows.empty())
    return section.note("Not measured: the limits of the hosts, which did not report at the end.");
  section.table({"Host", "cgroup", "peaks of its ranks", "peak", "limit", "out-of-memory kills"}, rows, 2);
  section.note(
      "The peaks of ranks need not have come at the same time. The peak of a cgroup is that since it was "
      "made, with "
      "all that runs in it, and counts cached files, too; its limit is the lowest of those above it.");
  return section;
}

Section networks(const JobRecord& record) {
  Section section("Networks");
  struct Use {
    const launcher::HostUsage* host;
    const launcher::NetworkUse* network;
  };
  std::vector<Use> uses;
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::NetworkUse& one : host.usage.networks) uses.push_back({&host, &one});
  }
  if (uses.empty())
    return section.not_measured(record.report.hosts.empty() ? "no host has reported at the end"
                                                            : "no adapter has counted any bytes");
  const auto bytes = [](const Use& use) {
    return std::max(use.network->received_bytes, use.network->sent_bytes);
  };
  std::ranges::stable_sort(uses, std::ranges::greater(), bytes);
  std::vector<Section::Row> rows;
  for (const Use& use : uses) {
    if (rows.size() == kMostRows) break;
    const auto limit = static_cast<double>(use.network->limit_bytes_per_second);
    const double rate =
        use.host->usage.seconds > 0 ? static_cast<double>(bytes(use)) / use.host->usage.seconds : 0;
    rows.push_back({use.host->host, use.network->device,
                    bytes_text(static_cast<double>(use.network->received_bytes)),
                    bytes_text(static_cast<double>(use.network->sent_bytes)), bytes_text(rate) + "/s",
                    limit > 0 ? bytes_text(limit) + "/s" : "", limit > 0 ? percent_text(rate / limit) : ""});
  }
  section.table({"Host", "adapter", "received", "sent", "mean rate", "link", "of it"}, rows, 2);
  section.note(
      "Bytes of all programs on the host, from the start of ddlrun's agent on: in a job that goes on, of "
      "that "
      "which was there longest. The speed of a link is what Linux states in /sys.");
  return section;
}

Section energy(const JobRecord& record) {
  Section section("Energy");
  std::map<std::string, double> joules;
  std::string unknown = "no host has reported at the end";
  double seconds = 0;
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::EnergyUse& one : host.usage.energy)
      joules[one.domain] += static_cast<double>(one.joules);
    if (!host.usage.energy_unknown.empty()) unknown = host.usage.energy_unknown;
    seconds = std::max(seconds, host.usage.seconds.value);
  }
  if (joules.empty()) return section.not_measured(unknown);
  std::vector<Section::Row> rows;
  for (const auto& [domain, sum] : joules)
    rows.push_back(
        {domain, fmt::format("{:.0f} J", sum), seconds > 0 ? fmt::format("{:.0f} W", sum / seconds) : ""});
  section.table({"Part", "energy", "mean power"}, rows);
  section.note(
      "Sums over the hosts, of all that ran there. Without GPUs, unless the part is the whole node.");
  return section;
}

Section binding(const JobRecord& record) {
  Section section("Binding");
  if (record.report.planned.empty())
    return section.not_measured(
        "there is no plan of all ranks: the job was not started, or it goes on when ranks fail");
  std::string chart = bindings_chart(record.report);
  if (chart.empty()) return section.sentence("No rank was bound to CPUs: Linux may move them.");
  section.draw(std::move(chart));
  section.note(
      "By the numbers of Linux, as they were planned; --report-bindings reads them back. At most 64 ranks of "
      "a "
      "host are drawn, and four ways of binding.");
  return section;
}

/// The least used first.
void add_gpus(const JobRecord& record, Section& section) {
  constexpr const char* kUnknown = "not measured";
  struct Use {
    const launcher::HostUsage* host;
    const launcher::GpuUse* gpu;
  };
  std::vector<Use> uses;
  std::string unknown = "no host has reported at the end";
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::GpuUse& one : host.usage.gpus) uses.push_back({&host, &one});
    if (!host.usage.gpus_unknown.empty()) unknown = host.usage.gpus_unknown;
  }
  if (uses.empty()) {
    section.note("Not measured: the use of GPUs; " + unknown + ".");
    return;
  }
  std::ranges::stable_sort(uses, {},
                           [](const Use& use) { return use.gpu->busy_ratio < 0 ? 2 : use.gpu->busy_ratio; });
  std::vector<Section::Row> rows;
  for (const auto& [host, gpu] : uses) {
    if (rows.size() == kMostRows) break;
    const double seconds = host->usage.seconds;
    rows.push_back({host->host, fmt::format("{}", gpu->index), gpu->model,
                    gpu->busy_ratio < 0 ? kUnknown : percent_text(gpu->busy_ratio),
                    gpu->memory_peak_bytes < 0 ? kUnknown : bytes_or_unknown(gpu->memory_peak_bytes),
                    bytes_or_unknown(gpu->memory_limit_bytes),
                    gpu->joules < 0 ? kUnknown : fmt::format("{} J", gpu->joules),
                    gpu->joules > 0 && seconds > 0
                        ? fmt::format("{:.0f} W", static_cast<double>(gpu->joules) / seconds)
                        : ""});
  }
  section.table({"Host", "GPU", "model", "busy", "memory, peak", "of", "energy", "mean power"}, rows, 3);
  section.note(
      "GPUs of the ranks, each once, with all programs on them, as their vendor's library says every few "
      "seconds. A GPU is busy while any kernel runs on it, even a small one.");
}

std::string clock_text(std::int64_t hertz) {
  return fmt::format("{:.2f} GHz", static_cast<double>(hertz) / 1e9);
}

/// Ranks that are bound alone.
void add_clocks(const JobRecord& record, Section& section) {
  std::vector<const RankOutcome*> known;
  for (const RankOutcome& rank : record.report.ranks)
    if (rank.clock_hertz > 0) known.push_back(&rank);
  if (known.empty()) {
    section.note(
        "Not measured: the clock of cores; Linux does not state it, no rank was bound to CPUs, or none ran "
        "for a "
        "second.");
    return;
  }
  std::ranges::stable_sort(known, {}, &RankOutcome::clock_hertz);
  const auto row = [](const char* name, const RankOutcome* rank) {
    return Section::Row{name, fmt::format("{}", rank->rank), rank->host, clock_text(rank->clock_hertz)};
  };
  section.table(
      {"Clock of cores", "rank", "host", "mean clock"},
      {row("slowest", known.front()), row("median", known[known.size() / 2]), row("fastest", known.back())},
      3);
  section.note(
      "The clock of a rank is that of the fastest of its cores at a few moments. A virtual machine states "
      "the "
      "nominal one.");
}

Section processors(const JobRecord& record) {
  Section section("CPUs and GPUs");
  std::vector<std::pair<double, const RankOutcome*>> used;
  for (const RankOutcome& rank : record.report.ranks) {
    if (const double cpus = cpus_used(rank); cpus >= 0) used.emplace_back(cpus, &rank);
  }
  if (used.empty()) {
    section.not_measured("no rank has ended in a way that its host could report");
  } else {
    std::ranges::sort(used, {}, &std::pair<double, const RankOutcome*>::first);
    const auto row = [](const char* name, const std::pair<double, const RankOutcome*>& one) {
      return Section::Row{name,
                          fmt::format("{}", one.second->rank),
                          one.second->host,
                          fmt::format("{:.2f}", one.first),
                          duration_text(one.second->usage.user_seconds),
                          duration_text(one.second->usage.system_seconds)};
    };
    section.table(
        {"CPUs used", "rank", "host", "CPUs", "own code", "kernel"},
        {row("fewest", used.front()), row("median", used[used.size() / 2]), row("most", used.back())}, 3);
  }
  add_clocks(record, section);
  add_gpus(record, section);
  return section;
}

}  // namespace

std::vector<Section> sections_of_hosts(const JobRecord& record) {
  return {networks(record), memory(record), binding(record), processors(record), energy(record)};
}

}  // namespace ddl::report
