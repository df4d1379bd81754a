#include "report/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::report {
namespace {

using launcher::duration_text;
using launcher::EndReason;
using launcher::RankOutcome;

constexpr std::size_t kMostFindings = 5;
/// Shares of the run time below which nothing is said.
constexpr double kLateShare = 0.05;
constexpr double kMoveShare = 0.2;
constexpr double kGoodBalance = 0.8;
constexpr double kIdleCpus = 0.3;
/// A clock is slow below this part of that of the others.
constexpr double kSlowClock = 0.85;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

const RankOutcome* find_rank(const JobRecord& record, int rank) {
  const auto found = std::ranges::find(record.report.ranks, rank, &RankOutcome::rank);
  return found == record.report.ranks.end() ? nullptr : &*found;
}

/// The last lines of ddlrun are "next: ...".
std::string advice_of(const std::vector<std::string>& said) {
  for (const std::string& line : said) {
    const std::string_view text = trim(line);
    if (text.starts_with("next: ")) return std::string(text.substr(6));
  }
  return "";
}

Finding of_end(const JobRecord& record) {
  const launcher::JobReport& report = record.report;
  const auto ranks = static_cast<std::int64_t>(report.ranks.size());
  if (report.reason == EndReason::kSuccess) {
    return {Finding::Weight::kFact,
            fmt::format("{} on {} ended without an error after {}.", counted(ranks, "rank"),
                        counted(static_cast<std::int64_t>(record.hosts.size()), "host"),
                        duration_text(report.run_seconds)),
            ""};
  }
  std::string what = record.said.empty() ? report.message : record.said.front();
  constexpr std::string_view kSpeaker = "ddlrun: ";
  if (what.starts_with(kSpeaker)) what.erase(0, kSpeaker.size());
  if (what.empty()) what = fmt::format("the job ended with exit code {}", report.exit_code);
  return {Finding::Weight::kFailure, what + ".", advice_of(record.said)};
}

std::string gigahertz_text(double hertz) { return fmt::format("{:.2f} GHz", hertz / 1e9); }

std::string advice_on_clock(const std::string& host) {
  return fmt::format(
      "tell the site that {0} is slow: a limit of power or temperature, or the governor of its clocks "
      "(cpupower "
      "frequency-info there); --exclude {0} leaves it out of the next job",
      host);
}

/// Why the rank was late, as far as the others differ from it; the advice says where to look.
Finding of_late_rank(const JobRecord& record, const JobTimes& times, const LateRank& late) {
  const RankOutcome* const rank = find_rank(record, late.rank);
  const std::string host = rank == nullptr || rank->host.empty() ? "a host that is not known" : rank->host;
  Finding finding{Finding::Weight::kLoss,
                  fmt::format("Rank {} on {} made the others wait {} of the time ({} each).", late.rank, host,
                              percent_text(late.share), duration_text(late.seconds)),
                  ""};
  std::vector<double> compute, cpus, clocks;
  double own_compute = 0, own_cpus = 0;
  for (const RankTimes& one : times.ranks) {
    const RankOutcome* const outcome = find_rank(record, one.rank);
    const bool is_known = outcome != nullptr && outcome->usage.user_seconds >= 0 && one.compute > 0;
    const double used =
        is_known ? (outcome->usage.user_seconds + outcome->usage.system_seconds) / one.compute : 0;
    (one.rank == late.rank ? own_compute : compute.emplace_back()) = one.compute;
    (one.rank == late.rank ? own_cpus : cpus.emplace_back()) = used;
    if (one.rank != late.rank && outcome != nullptr && outcome->clock_hertz > 0)
      clocks.push_back(static_cast<double>(outcome->clock_hertz));
  }
  const double own_clock = rank == nullptr ? -1 : static_cast<double>(rank->clock_hertz);
  const double usual = median(compute), usual_cpus = median(cpus), usual_clock = median(clocks);
  if (usual > 0 && own_compute > 1.02 * usual)
    finding.what += fmt::format(" It computed {:.2f} times as long as the median rank.", own_compute / usual);
  if (own_cpus > 0 && own_cpus < 0.8 * usual_cpus) {
    finding.what += fmt::format(" Meanwhile it had {:.2f} CPUs, the others {:.2f}.", own_cpus, usual_cpus);
    finding.advice = fmt::format(
        "see what else runs on the cores of rank {} (--report-bindings names them; top on {}), or what it "
        "waits for (ddlrun --inspect)",
        late.rank, host);
  } else if (own_clock > 0 && own_clock < kSlowClock * usual_clock) {
    finding.what += fmt::format(" Its cores ran at {}, those of the others at {}.", gigahertz_text(own_clock),
                                gigahertz_text(usual_clock));
    finding.advice = advice_on_clock(host);
  } else {
    finding.advice = fmt::format(
        "give rank {} less work, or see whether its cores are slower (--report-bindings)", late.rank);
    if (record.hosts.size() > 1)
      finding.advice += fmt::format(", and how {} differs from the other hosts (--check-hosts)", host);
  }
  return finding;
}

void add_times(const JobRecord& record, const JobTimes& times, std::vector<Finding>& findings) {
  const double run = times.mean.run;
  if (!times.has_calls || run <= 0) return;
  if (!times.late.empty() && times.late.front().share >= kLateShare) {
    findings.push_back(of_late_rank(record, times, times.late.front()));
  } else if (times.efficiency.load_balance < kGoodBalance) {
    findings.push_back(
        {Finding::Weight::kLoss,
         fmt::format("The ranks' work is uneven: their mean compute time is {} of the longest.",
                     percent_text(times.efficiency.load_balance)),
         "divide the data so that every rank has the same work"});
  }
  if (times.mean.move / run >= kMoveShare)
    findings.push_back(
        {Finding::Weight::kLoss,
         fmt::format("Moving and combining data took {} of the time ({}).",
                     percent_text(times.mean.move / run), duration_text(times.mean.move)),
         "make fewer and larger calls, or overlap them with computing: named tensors are fused "
         "and executed beside it"});
}

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

/// The memory that a host must have for the job, with a margin, in GiB; 0: not known. From the cgroup, or if that is not
/// of the job alone (it has no limit), from the ranks' own peaks.
std::int64_t needed_gibibytes(const JobRecord& record) {
  constexpr double kMargin = 1.2;
  std::map<std::string, double> peaks;
  for (const RankOutcome& rank : record.report.ranks)
    peaks[rank.host] += std::max(static_cast<double>(rank.usage.peak_resident_bytes), 0.0);
  for (const launcher::HostUsage& host : record.report.hosts) {
    if (host.usage.memory.peak > 0 && host.usage.memory.limit < std::numeric_limits<std::int64_t>::max())
      peaks[host.host] = static_cast<double>(host.usage.memory.peak);
  }
  double most = 0;
  for (const auto& [host, bytes] : peaks) most = std::max(most, bytes);
  return static_cast<std::int64_t>(std::ceil(kMargin * most / kGibibyte));
}

bool has_limit(const launcher::MemoryUse& memory) {
  return memory.limit > 0 && memory.limit < std::numeric_limits<std::int64_t>::max();
}

/// "10.0 of 64.0 GiB".
std::string of_limit_text(const launcher::MemoryUse& memory) {
  return fmt::format("{:.1f} of {:.1f} GiB", static_cast<double>(memory.peak) / kGibibyte,
                     static_cast<double>(memory.limit) / kGibibyte);
}

/// A limit that the job has not nearly needed, or that it has reached.
void add_memory(const JobRecord& record, std::vector<Finding>& findings) {
  constexpr double kFull = 0.95, kHalf = 0.5;
  for (const launcher::HostUsage& host : record.report.hosts) {
    const launcher::MemoryUse& memory = host.usage.memory;
    if (memory.oom_kills <= 0) continue;
    std::string sizes;
    if (has_limit(memory) && memory.peak > 0) sizes = fmt::format(": the job used {}", of_limit_text(memory));
    findings.push_back({Finding::Weight::kLoss,
                        fmt::format("On {} the kernel has killed {} for lack of memory{}.", host.host,
                                    counted(memory.oom_kills, "process"), sizes),
                        "use fewer ranks on a host, a smaller batch, or ask for more memory"});
    return;
  }
  const launcher::HostUsage* fullest = nullptr;
  for (const launcher::HostUsage& host : record.report.hosts) {
    const launcher::MemoryUse& memory = host.usage.memory;
    if (!has_limit(memory) || memory.peak < 0) continue;
    if (fullest == nullptr || memory.peak > fullest->usage.memory.peak) fullest = &host;
  }
  if (fullest == nullptr) return;
  const auto peak = static_cast<double>(fullest->usage.memory.peak);
  const auto limit = static_cast<double>(fullest->usage.memory.limit);
  const std::string what =
      fmt::format("{} used {} of memory at its peak.", fullest->host, of_limit_text(fullest->usage.memory));
  if (peak > kFull * limit) {
    findings.push_back({Finding::Weight::kLoss, what, "ask for more: the next run may be killed"});
  } else if (peak < kHalf * limit && record.report.reason == EndReason::kSuccess) {
    findings.push_back(
        {Finding::Weight::kFact, what, fmt::format("ask for {} GiB a host", needed_gibibytes(record))});
  }
}

void add_cpus(const JobRecord& record, const JobTimes& times, std::vector<Finding>& findings) {
  std::vector<double> cpus;
  for (const RankOutcome& one : record.report.ranks) {
    if (const double used = cpus_used(one); used >= 0) cpus.push_back(used);
  }
  const double used = median(cpus);
  // A rank that waits for others is idle for another reason, and so is one that has hardly begun.
  if (cpus.empty() || used >= kIdleCpus || times.mean.compute < 0.5 * times.mean.run || times.mean.run < 1)
    return;
  findings.push_back(
      {Finding::Weight::kLoss,
       fmt::format("The median rank used {:.2f} of a CPU: it waited for something else most of "
                   "the time, such as files or a GPU.",
                   used),
       "if there is no GPU that computes, see how the data are read"});
}

/// Where calls do not tell which rank is late: the one with the slowest cores. Those of an idle rank are slow for that.
void add_clocks(const JobRecord& record, std::vector<Finding>& findings) {
  std::vector<double> clocks;
  const RankOutcome* slowest = nullptr;
  for (const RankOutcome& rank : record.report.ranks) {
    if (rank.clock_hertz <= 0 || cpus_used(rank) < kIdleCpus) continue;
    clocks.push_back(static_cast<double>(rank.clock_hertz));
    if (slowest == nullptr || rank.clock_hertz < slowest->clock_hertz) slowest = &rank;
  }
  const double usual = median(clocks);
  if (slowest == nullptr || static_cast<double>(slowest->clock_hertz) >= kSlowClock * usual) return;
  findings.push_back(
      {Finding::Weight::kLoss,
       fmt::format("The cores of rank {} on {} ran at {}, those of the median rank at {}.", slowest->rank,
                   slowest->host, gigahertz_text(static_cast<double>(slowest->clock_hertz)),
                   gigahertz_text(usual)),
       advice_on_clock(slowest->host)});
}

/// GPUs that were hardly used keep them from others, and cost as much.
void add_gpus(const JobRecord& record, std::vector<Finding>& findings) {
  constexpr double kIdle = 0.3, kLeastSeconds = 30;
  double busy = 0;
  int idle = 0, gpus = 0;
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::GpuUse& gpu : host.usage.gpus) {
      if (gpu.busy_ratio < 0) continue;
      ++gpus;
      busy += gpu.busy_ratio;
      if (gpu.busy_ratio < 0.01) ++idle;
    }
  }
  if (gpus == 0 || record.report.run_seconds < kLeastSeconds) return;
  if (idle > 0) {
    findings.push_back(
        {Finding::Weight::kLoss,
         fmt::format("{} of {} of the ranks did nothing.", idle, counted(gpus, "GPU")),
         "see whether the program computes on them (--report-bindings names those of each rank), or "
         "ask for fewer"});
  } else if (busy / gpus < kIdle) {
    findings.push_back(
        {Finding::Weight::kLoss, fmt::format("The GPUs were busy {} of the time.", percent_text(busy / gpus)),
         "see what they wait for, often the reading of data; a larger batch may help, or fewer GPUs"});
  }
}

}  // namespace

double cpus_used(const RankOutcome& rank) {
  if (rank.usage.user_seconds < 0 || rank.run_seconds <= 0) return -1;
  return (rank.usage.user_seconds + rank.usage.system_seconds) / rank.run_seconds;
}

std::vector<Finding> verdict(const JobRecord& record, const JobTimes& times) {
  std::vector<Finding> findings{of_end(record)};
  add_times(record, times, findings);
  if (!times.has_calls) add_clocks(record, findings);
  add_memory(record, findings);
  add_gpus(record, findings);
  add_cpus(record, times, findings);
  if (findings.size() > kMostFindings) findings.resize(kMostFindings);
  return findings;
}

std::vector<std::string> next_request(const JobRecord& record) {
  constexpr double kTimeMargin = 1.5;
  std::vector<std::string> directives;
  if (record.report.reason != EndReason::kSuccess || !record.scheduler_job.starts_with("Slurm"))
    return directives;
  if (const std::int64_t memory = needed_gibibytes(record); memory > 0)
    directives.push_back(fmt::format("#SBATCH --mem={}G", memory));
  const auto minutes = static_cast<std::int64_t>(std::ceil(kTimeMargin * record.report.run_seconds / 60)) + 1;
  directives.push_back(fmt::format("#SBATCH --time={:02}:{:02}:00", minutes / 60, minutes % 60));
  return directives;
}

}  // namespace ddl::report
