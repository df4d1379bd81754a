#include "report/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable_text.h"
#include "contract/version.h"

namespace ddl::report {
namespace {

using launcher::InspectedNode;
using launcher::InspectedRank;
using launcher::JobInspection;
using Kind = MetricFamily::Kind;

/// In the order of kTable.
enum Family {
  kJobInfo,
  kRanks,
  kHosts,
  kStartTime,
  kStartUp,
  kGeneration,
  kStalledRanks,
  kFailures,
  kOutput,
  kLinks,
  kHeadCpuSeconds,
  kHeadResident,
  kMemoryPeak,
  kMemoryLimit,
  kOomKills,
  kNetwork,
  kEnergy,
  kClockOffset,
  kClockBound,
  kGpuUtilization,
  kGpuMemory,
  kGpuEnergy,
  kCpuSeconds,
  kResident,
  kPeak,
  kSteps,
  kLastEvent,
  kCollectives,
  kCollectiveBytes,
  kCollectiveSeconds,
  kSpreadOfCpu,
  kSpreadOfResident,
  kSpreadOfSteps,
  kSpreadOfWait,
  kLeastWait,
  kFamilies
};

constexpr std::array<MetricFamily, kFamilies> kTable = {{
    {Kind::kInfo, "ddlrun_job", "", "name scheduler_job version", "The job, and the ddlrun that runs it"},
    {Kind::kGauge, "ddlrun_ranks", "", "state", "Ranks that are not_started, running, ended or unknown"},
    {Kind::kGauge, "ddlrun_hosts", "", "state", "Hosts that have answered, or are silent"},
    {Kind::kGauge, "ddlrun_start_time_seconds", "seconds", "", "When the ranks were started, since 1970"},
    {Kind::kGauge, "ddlrun_startup_seconds", "seconds", "phase",
     "From the start of ddlrun until its agents were ready, all ranks were started, and so on"},
    {Kind::kGauge, "ddlrun_generation", "", "", "How often the ranks of an elastic job were started before"},
    {Kind::kGauge, "ddlrun_stalled_ranks", "", "", "Ranks that have waited for others for 10 s or longer"},
    {Kind::kCounter, "ddlrun_failures", "", "reason",
     "How often the job, or a generation of an elastic job, has ended with a failure"},
    {Kind::kCounter, "ddlrun_output_bytes", "bytes", "stream",
     "Output of the ranks that ddlrun has received"},
    {Kind::kCounter, "ddlrun_link_bytes", "bytes", "direction", "Bytes between ddlrun and its agents"},
    {Kind::kCounter, "ddlrun_head_cpu_seconds", "seconds", "", "CPU time of ddlrun itself on its own host"},
    {Kind::kGauge, "ddlrun_head_resident_bytes", "bytes", "", "Memory of ddlrun itself on its own host"},
    {Kind::kGauge, "ddlrun_host_memory_peak_bytes", "bytes", "host", "The most memory of the job's cgroup"},
    {Kind::kGauge, "ddlrun_host_memory_limit_bytes", "bytes", "host", "The limit of the job's cgroup"},
    {Kind::kCounter, "ddlrun_host_oom_kills", "", "host", "Processes that the kernel has killed for memory"},
    {Kind::kCounter, "ddlrun_host_network_bytes", "bytes", "host device direction",
     "Bytes of the host's adapters, also those of others"},
    {Kind::kCounter, "ddlrun_host_energy_joules", "joules", "host domain",
     "Energy of the host, also that of others"},
    {Kind::kGauge, "ddlrun_host_clock_offset_seconds", "seconds", "host",
     "The host's clock minus that of ddlrun's own host"},
    {Kind::kGauge, "ddlrun_host_clock_offset_bound_seconds", "seconds", "host",
     "By how much this offset may be wrong, for the latency of the answer"},
    {Kind::kGauge, "ddlrun_gpu_utilization_ratio", "ratio", "host gpu",
     "The part of the last moments in which a kernel ran"},
    {Kind::kGauge, "ddlrun_gpu_memory_used_bytes", "bytes", "host gpu", "Memory of the GPU that is in use"},
    {Kind::kCounter, "ddlrun_gpu_energy_joules", "joules", "host gpu",
     "Energy of the GPU, also that of others"},
    {Kind::kCounter, "ddlrun_rank_cpu_seconds", "seconds", "host rank",
     "CPU time of a rank, with the children that it has waited for"},
    {Kind::kGauge, "ddlrun_rank_resident_bytes", "bytes", "host rank", "Memory of a rank's process"},
    {Kind::kGauge, "ddlrun_rank_peak_bytes", "bytes", "host rank",
     "The most memory that a rank's process has had"},
    {Kind::kCounter, "ddlrun_rank_steps", "", "host rank", "Steps of named tensors that have ended"},
    {Kind::kGauge, "ddlrun_rank_last_event_timestamp_seconds", "seconds", "host rank",
     "When a rank has last begun or ended something in libddl, since 1970"},
    {Kind::kCounter, "ddlrun_rank_collectives", "", "host rank op", "Calls of libddl that have ended"},
    {Kind::kCounter, "ddlrun_rank_collective_bytes", "bytes", "host rank op",
     "Bytes of one rank in these calls"},
    {Kind::kCounter, "ddlrun_rank_collective_seconds", "seconds", "host rank op part",
     "Time in these calls: part wait, until the other ranks had made them, too, and part move, the rest"},
    {Kind::kGauge, "ddlrun_ranks_cpu_seconds", "seconds", "statistic", "CPU time over the ranks"},
    {Kind::kGauge, "ddlrun_ranks_resident_bytes", "bytes", "statistic", "Memory of a process over the ranks"},
    {Kind::kGauge, "ddlrun_ranks_steps", "", "statistic",
     "Steps of named tensors that have ended, over the ranks"},
    {Kind::kGauge, "ddlrun_ranks_wait_seconds", "seconds", "statistic",
     "Waits for others in calls, over the ranks"},
    {Kind::kGauge, "ddlrun_slowest_ranks_wait_seconds", "seconds", "host rank",
     "Waits in calls of the eight ranks that have waited least: the others have waited for them"},
}};

using Label = std::pair<std::string_view, std::string>;
using Labels = std::vector<Label>;

/// A label's value: in valid UTF-8, with the three characters escaped that both formats escape.
std::string escaped(std::string_view text) {
  std::string value;
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    if (length == 0) {
      value += "\uFFFD";
    } else if (character == "\n") {
      value += "\\n";
    } else {
      if (character == "\\" || character == "\"") value += '\\';
      value += character;
    }
  }
  return value;
}

/// Times are whole nanoseconds. What is left of a rounding must not look as if a counter had fallen.
double rounded(double seconds) {
  constexpr double kNanoseconds = 1e9;
  return std::round(seconds * kNanoseconds) / kNanoseconds;
}

class Samples {
 public:
  Samples(const JobInspection& job, MetricsDetail detail) : job_(job), detail_(detail) {}

  /// Adds to the sample with these labels.
  void add(Family family, double value, Labels labels = {}) { at(family, std::move(labels)) += value; }

  void add_of_host(Family family, const std::string& host, double value, Labels labels = {}) {
    if (detail_ != MetricsDetail::kJob) labels.insert(labels.begin(), {"host", host});
    add(family, value, std::move(labels));
  }

  void add_of_rank(Family family, const InspectedRank& rank, double value, Labels labels = {}) {
    add(family, value, of_rank(rank, std::move(labels)));
  }
  /// The largest of those that are one sample.
  void most_of_rank(Family family, const InspectedRank& rank, double value) {
    double& most = at(family, of_rank(rank, {}));
    most = std::max(most, value);
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto& samples : samples_) sum += samples.size();
    return sum;
  }

  std::string text(MetricsFormat format, std::optional<double> time) const {
    std::string text;
    for (std::size_t family = 0; family < samples_.size(); ++family)
      if (!samples_[family].empty()) write(kTable[family], samples_[family], format, time, text);
    if (format == MetricsFormat::kOpenMetrics) text += "# EOF\n";
    return text;
  }

 private:
  double& at(Family family, Labels labels) {
    labels.insert(labels.begin(), {"jobid", job_.job.id});
    return samples_[family][std::move(labels)];
  }

  Labels of_rank(const InspectedRank& rank, Labels labels) const {
    if (detail_ == MetricsDetail::kRank) labels.insert(labels.begin(), {"rank", std::to_string(rank.rank)});
    if (detail_ != MetricsDetail::kJob)
      labels.insert(labels.begin(), {"host", job_.nodes[static_cast<std::size_t>(rank.node)].name});
    return labels;
  }

  static void write(const MetricFamily& family, const std::map<Labels, double>& samples, MetricsFormat format,
                    std::optional<double> time, std::string& text) {
    const bool is_open = format == MetricsFormat::kOpenMetrics;
    std::string name(family.name);
    if (family.kind == Kind::kInfo) name += "_info";
    if (family.kind == Kind::kCounter) name += "_total";
    const std::string described = is_open ? std::string(family.name) : name;
    const char* const type = family.kind == Kind::kCounter           ? "counter"
                             : family.kind == Kind::kInfo && is_open ? "info"
                                                                     : "gauge";
    text += fmt::format("# HELP {} {}.\n# TYPE {} {}\n", described, family.help, described, type);
    if (is_open && !family.unit.empty()) text += fmt::format("# UNIT {} {}\n", described, family.unit);
    for (const auto& [labels, value] : samples) {
      text += name + "{";
      for (const auto& [label, of] : labels)
        text += fmt::format("{}{}=\"{}\"", text.back() == '{' ? "" : ",", label, escaped(of));
      text += fmt::format("}} {}", family.unit == "seconds" ? rounded(value) : value);
      if (time) text += is_open ? fmt::format(" {:.3f}", *time) : fmt::format(" {:.0f}", 1000 * *time);
      text += '\n';
    }
  }

  const JobInspection& job_;
  MetricsDetail detail_;
  std::array<std::map<Labels, double>, kFamilies> samples_;
};

void add_job(const JobInspection& job, Samples& samples) {
  constexpr double kStalledSeconds = 10;
  Labels info{{"name", job.job.name}, {"version", contract::kVersion}};
  if (!job.job.scheduler_job.empty())
    info.insert(info.begin() + 1, Label("scheduler_job", job.job.scheduler_job));
  samples.add(kJobInfo, 1, info);
  samples.add(kStartTime, static_cast<double>(job.job.began));
  for (const launcher::StartPhase& phase : job.job.start) {
    std::string name = phase.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    samples.add(kStartUp, phase.seconds, {{"phase", name}});
  }
  if (job.job.generation >= 0) samples.add(kGeneration, job.job.generation);
  if (job.job.head_cpu_seconds >= 0) samples.add(kHeadCpuSeconds, job.job.head_cpu_seconds);
  if (job.job.head_resident_bytes >= 0)
    samples.add(kHeadResident, static_cast<double>(job.job.head_resident_bytes));
  for (const auto& [reason, name] : launcher::kEndReasonNames) {
    const auto found = job.job.failures.find(name);
    if (launcher::is_failure(reason))
      samples.add(kFailures, found == job.job.failures.end() ? 0 : static_cast<double>(found->second),
                  {{"reason", name}});
  }
  const launcher::HeadTraffic& traffic = job.job.traffic;
  const auto add_bytes = [&](Family family, std::int64_t bytes, const char* label, const char* name) {
    if (bytes >= 0) samples.add(family, static_cast<double>(bytes), {{label, name}});
  };
  add_bytes(kOutput, traffic.stdout_bytes, "stream", "stdout");
  add_bytes(kOutput, traffic.stderr_bytes, "stream", "stderr");
  add_bytes(kLinks, traffic.sent_bytes, "direction", "transmit");
  add_bytes(kLinks, traffic.received_bytes, "direction", "receive");
  for (const char* const state : {"answered", "silent"}) samples.add(kHosts, 0, {{"state", state}});
  for (const InspectedNode& node : job.nodes)
    samples.add(kHosts, 1, {{"state", node.silence.empty() ? "answered" : "silent"}});
  for (const char* const state : {"not_started", "running", "ended", "unknown"})
    samples.add(kRanks, 0, {{"state", state}});
  for (const InspectedRank& rank : job.ranks) {
    using enum InspectedRank::State;
    if (rank.state == kFormer) continue;
    const char* const state = rank.state == kNotStarted ? "not_started"
                              : rank.state == kRunning  ? "running"
                              : rank.state == kEnded    ? "ended"
                                                        : "unknown";
    samples.add(kRanks, 1, {{"state", state}});
  }
  double stalled = 0;
  for (const InspectedRank& rank : job.ranks) {
    const bool waits = rank.wait >= 0 && rank.wait < std::ssize(job.waits);
    if (waits && job.waits[static_cast<std::size_t>(rank.wait)].seconds >= kStalledSeconds) ++stalled;
  }
  samples.add(kStalledRanks, stalled);
}

void add_host(const InspectedNode& node, Samples& samples) {
  const launcher::MemoryUse& memory = node.usage.memory;
  if (memory.peak >= 0) samples.add_of_host(kMemoryPeak, node.name, static_cast<double>(memory.peak));
  if (memory.limit >= 0 && memory.limit < std::numeric_limits<std::int64_t>::max())
    samples.add_of_host(kMemoryLimit, node.name, static_cast<double>(memory.limit));
  if (memory.oom_kills >= 0) samples.add_of_host(kOomKills, node.name, static_cast<double>(memory.oom_kills));
  for (const launcher::NetworkUse& one : node.usage.networks) {
    samples.add_of_host(kNetwork, node.name, static_cast<double>(one.received_bytes),
                        {{"device", one.device}, {"direction", "receive"}});
    samples.add_of_host(kNetwork, node.name, static_cast<double>(one.sent_bytes),
                        {{"device", one.device}, {"direction", "transmit"}});
  }
  for (const launcher::EnergyUse& one : node.usage.energy)
    samples.add_of_host(kEnergy, node.name, static_cast<double>(one.joules), {{"domain", one.domain}});
}

/// Without hosts: that of the host whose clock is farthest away.
void add_clocks(const JobInspection& job, MetricsDetail detail, Samples& samples) {
  std::map<std::string_view, launcher::ClockOffset> clocks;
  for (const InspectedNode& node : job.nodes) {
    if (!node.silence.empty() || node.clock.bound < 0) continue;
    launcher::ClockOffset& farthest =
        clocks[detail == MetricsDetail::kJob ? "" : std::string_view(node.name)];
    if (farthest.bound < 0 || std::abs(node.clock.seconds) > std::abs(farthest.seconds))
      farthest = node.clock;
  }
  for (const auto& [host, clock] : clocks) {
    samples.add_of_host(kClockOffset, std::string(host), clock.seconds);
    samples.add_of_host(kClockBound, std::string(host), clock.bound);
  }
}

/// Each GPU once: nodes of the same name have those of their own ranks. Without hosts there is one sample for all GPUs:
/// the mean of their use, and sums.
void add_gpus(const JobInspection& job, MetricsDetail detail, Samples& samples) {
  std::map<std::pair<std::string_view, std::string_view>, const launcher::GpuUse*> gpus;
  double known = 0;
  for (const InspectedNode& node : job.nodes) {
    if (!node.silence.empty()) continue;
    for (const launcher::GpuUse& gpu : node.usage.gpus)
      if (gpus.try_emplace({node.name, gpu.name}, &gpu).second && gpu.last_busy_ratio >= 0) ++known;
  }
  const bool is_of_job = detail == MetricsDetail::kJob;
  for (const auto& [name, gpu] : gpus) {
    const std::string host(name.first);
    const Labels labels = is_of_job ? Labels() : Labels{{"gpu", gpu->name}};
    if (gpu->last_busy_ratio >= 0)
      samples.add_of_host(kGpuUtilization, host, gpu->last_busy_ratio / (is_of_job ? known : 1), labels);
    if (gpu->memory_bytes >= 0)
      samples.add_of_host(kGpuMemory, host, static_cast<double>(gpu->memory_bytes), labels);
    if (gpu->joules >= 0) samples.add_of_host(kGpuEnergy, host, static_cast<double>(gpu->joules), labels);
  }
}

void add_rank(const InspectedRank& rank, double now, Samples& samples) {
  if (rank.process.cpu_seconds >= 0) samples.add_of_rank(kCpuSeconds, rank, rank.process.cpu_seconds);
  if (rank.process.resident_bytes >= 0)
    samples.add_of_rank(kResident, rank, static_cast<double>(rank.process.resident_bytes));
  if (rank.process.peak_resident_bytes >= 0)
    samples.most_of_rank(kPeak, rank, static_cast<double>(rank.process.peak_resident_bytes));
  if (rank.last_event >= 0) samples.most_of_rank(kLastEvent, rank, now - rank.last_event);
  if (rank.calls.sums.empty()) return;
  samples.add_of_rank(kSteps, rank, static_cast<double>(rank.calls.steps));
  for (const launcher::CallSum& sum : rank.calls.sums) {
    const Labels op{{"op", sum.kind}};
    samples.add_of_rank(kCollectives, rank, static_cast<double>(sum.calls), op);
    samples.add_of_rank(kCollectiveBytes, rank, static_cast<double>(sum.bytes), op);
    samples.add_of_rank(kCollectiveSeconds, rank, sum.wait_seconds, {{"op", sum.kind}, {"part", "wait"}});
    samples.add_of_rank(kCollectiveSeconds, rank, std::max(sum.seconds - sum.wait_seconds, 0.0),
                        {{"op", sum.kind}, {"part", "move"}});
  }
}

double wait_seconds(const InspectedRank& rank) {
  double sum = 0;
  for (const launcher::CallSum& one : rank.calls.sums) sum += one.wait_seconds;
  return sum;
}

/// How values of ranks are spread, also where no rank has samples of its own.
void add_spread(const JobInspection& job, Samples& samples) {
  std::array<std::vector<double>, 4> values;
  auto& [cpu, resident, steps, wait] = values;
  std::vector<const InspectedRank*> slowest;
  for (const InspectedRank& rank : job.ranks) {
    if (rank.state == InspectedRank::State::kFormer) continue;
    if (rank.process.cpu_seconds >= 0) cpu.push_back(rank.process.cpu_seconds);
    if (rank.process.resident_bytes >= 0)
      resident.push_back(static_cast<double>(rank.process.resident_bytes));
    if (rank.calls.sums.empty()) continue;
    steps.push_back(static_cast<double>(rank.calls.steps));
    wait.push_back(wait_seconds(rank));
    slowest.push_back(&rank);
  }
  constexpr std::pair<double, const char*> kQuantiles[] = {
      {0, "min"}, {0.5, "median"}, {0.95, "p95"}, {1, "max"}};
  constexpr std::array<Family, 4> kSpreads = {kSpreadOfCpu, kSpreadOfResident, kSpreadOfSteps, kSpreadOfWait};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    std::ranges::sort(values[i]);
    const auto last = static_cast<double>(values[i].size() - 1);
    for (const auto& [quantile, name] : kQuantiles)
      samples.add(kSpreads[i], values[i][static_cast<std::size_t>(std::ceil(quantile * last))],
                  {{"statistic", name}});
  }
  constexpr std::size_t kMostSlow = 8;
  const auto end = slowest.begin() + static_cast<std::ptrdiff_t>(std::min(kMostSlow, slowest.size()));
  std::ranges::partial_sort(slowest, end, std::ranges::less(),
                            [](const InspectedRank* rank) { return wait_seconds(*rank); });
  for (auto rank = slowest.begin(); rank != end; ++rank)
    samples.add(kLeastWait, wait_seconds(**rank),
                {{"host", job.nodes[static_cast<std::size_t>((*rank)->node)].name},
                 {"rank", std::to_string((*rank)->rank)}});
}

Samples samples_of(const JobInspection& job, MetricsDetail detail) {
  Samples samples(job, detail);
  add_job(job, samples);
  // Processes of an elastic job that were started one after the other on a host are nodes of the same name.
  std::set<std::string_view> counted;
  for (const InspectedNode& node : job.nodes)
    if (node.silence.empty() && counted.insert(node.name).second) add_host(node, samples);
  add_clocks(job, detail, samples);
  add_gpus(job, detail, samples);
  const double now = static_cast<double>(job.job.began) + job.job.age;
  for (const InspectedRank& rank : job.ranks) add_rank(rank, now, samples);
  add_spread(job, samples);
  return samples;
}

}  // namespace

std::span<const MetricFamily> metric_families() { return kTable; }

std::string metrics_text(const JobInspection& job, MetricsFormat format, MetricsDetail detail,
                         std::optional<double> time) {
  if (detail != MetricsDetail::kAuto) return samples_of(job, detail).text(format, time);
  for (const MetricsDetail one : {MetricsDetail::kRank, MetricsDetail::kHost}) {
    if (one == MetricsDetail::kRank && job.ranks.size() > kMostRanks) continue;
    const Samples samples = samples_of(job, one);
    if (samples.count() <= kMostSeries) return samples.text(format, time);
  }
  return samples_of(job, MetricsDetail::kJob).text(format, time);
}

}  // namespace ddl::report
