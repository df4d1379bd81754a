#include "report/metrics.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "support/catch.h"

using Catch::Matchers::Contains;
using namespace ddl::launcher;
using ddl::report::metric_families;
using ddl::report::metrics_text;
using ddl::report::MetricsDetail;
using ddl::report::MetricsFormat;

namespace {

/// Two ranks on each of so many hosts.
JobInspection job_of(int hosts, int ranks) {
  JobInspection job;
  job.job.id = "ddlrun-4711-0f3c9a1b";
  job.job.name = "train \"a\\b\"\n\xff";
  job.job.began = 1000;
  job.job.age = 20;
  job.job.start = {{"all ranks started", 0.5}};
  job.job.head_cpu_seconds = 0.25;
  job.job.traffic = {7, 8, 9, 10};
  job.job.failures = {{"host_lost", 2}};
  for (int host = 0; host < hosts; ++host) {
    InspectedNode& node = job.nodes.emplace_back();
    node.name = "node" + std::to_string(host);
    node.usage.memory = {1 << 30, 1 << 20, 0, "/job", ""};
    node.usage.networks = {{"eth0", 10, 20, 0}};
    node.usage.energy = {{"package-0", 300}};
    node.clock = {host == 0 ? 0.25 : -0.5, 0.125};
    node.usage.gpus = {{"GPU-a", 0, "H200", 0.5, 0.75, 1 << 20, 1 << 21, 1 << 30, 60},
                       {"0000:c1:00.0", 1, "", 0.25, 0.25, -1, -1, -1, -1}};
  }
  for (int rank = 0; rank < ranks; ++rank) {
    InspectedRank& one = job.ranks.emplace_back();
    one.rank = rank;
    one.node = rank * hosts / ranks;
    one.state = InspectedRank::State::kRunning;
    one.process.cpu_seconds = 1.5;
    one.process.resident_bytes = 4096;
    one.process.peak_resident_bytes = 8192 + rank;
    one.last_event = 0.5 * rank;
    one.calls.steps = 7;
    one.calls.sums = {{"allreduce", false, 3, 12, 0.5, 0.125}, {"allreduce", true, 4, 16, 0.25, 0}};
  }
  return job;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : ddl::split(text, '\n')) lines.emplace_back(line);
  return lines;
}

std::size_t num_samples(const std::string& text) {
  const auto lines = lines_of(text);
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [](const std::string& line) { return !line.empty() && !line.starts_with('#'); }));
}

}  // namespace

TEST_CASE("metrics are what the job has used, in both formats") {
  const JobInspection job = job_of(1, 2);
  const std::string classic = metrics_text(job, MetricsFormat::kPrometheus);
  const std::string open = metrics_text(job, MetricsFormat::kOpenMetrics, MetricsDetail::kAuto, 1020.5);
  for (const char* const line :
       {"# TYPE ddlrun_job_info gauge\n",
        "# TYPE ddlrun_rank_steps_total counter\n",
        "ddlrun_job_info{jobid=\"ddlrun-4711-0f3c9a1b\",name=\"train \\\"a\\\\b\\\"\\n\uFFFD\",version=",
        "ddlrun_ranks{jobid=\"ddlrun-4711-0f3c9a1b\",state=\"running\"} 2\n",
        "ddlrun_startup_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",phase=\"all_ranks_started\"} 0.5\n",
        "ddlrun_failures_total{jobid=\"ddlrun-4711-0f3c9a1b\",reason=\"host_lost\"} 2\n",
        "ddlrun_failures_total{jobid=\"ddlrun-4711-0f3c9a1b\",reason=\"rank_failed\"} 0\n",
        "ddlrun_output_bytes_total{jobid=\"ddlrun-4711-0f3c9a1b\",stream=\"stderr\"} 8\n",
        "ddlrun_link_bytes_total{jobid=\"ddlrun-4711-0f3c9a1b\",direction=\"transmit\"} 9\n",
        "ddlrun_host_clock_offset_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\"} 0.25\n",
        "ddlrun_host_clock_offset_bound_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\"} 0.125\n",
        "ddlrun_head_cpu_seconds_total{jobid=\"ddlrun-4711-0f3c9a1b\"} 0.25\n",
        "ddlrun_start_time_seconds{jobid=\"ddlrun-4711-0f3c9a1b\"} 1000\n",
        "ddlrun_host_memory_limit_bytes{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\"} 1073741824\n",
        "{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",device=\"eth0\",direction=\"transmit\"} 20\n",
        "ddlrun_gpu_utilization_ratio{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",gpu=\"GPU-a\"} 0.75\n",
        "ddlrun_gpu_memory_used_bytes{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",gpu=\"GPU-a\"} 1048576\n",
        "ddlrun_gpu_energy_joules_total{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",gpu=\"GPU-a\"} 60\n",
        "host=\"node0\",gpu=\"0000:c1:00.0\"} 0.25\n",
        "ddlrun_rank_cpu_seconds_total{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"1\"} 1.5\n",
        "ddlrun_rank_peak_bytes{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"1\"} 8193\n",
        "ddlrun_rank_last_event_timestamp_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"1\"} "
        "1019.5\n",
        "ddlrun_rank_collectives_total{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"0\",op="
        "\"allreduce\"} "
        "7\n",
        "rank=\"0\",op=\"allreduce\",part=\"move\"} 0.625\n",
        "rank=\"0\",op=\"allreduce\",part=\"wait\"} 0.125\n"})
    CHECK_THAT(classic, Contains(line));
  CHECK_THAT(classic,
             !Contains("ddlrun_gpu_energy_joules_total{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\","
                       "gpu=\"0000:c1:00.0\""));
  CHECK_THAT(classic, !Contains("# EOF") && !Contains("ddlrun_generation"));
  for (const char* const line : {"# TYPE ddlrun_job info\n", "# TYPE ddlrun_rank_steps counter\n",
                                 "# UNIT ddlrun_rank_cpu_seconds seconds\n", " 2 1020.500\n"})
    CHECK_THAT(open, Contains(line));
  CHECK(open.ends_with("\n# EOF\n"));
  CHECK(num_samples(open) == num_samples(classic));

  JobInspection scheduled = job;
  scheduled.job.scheduler_job = "4711";
  CHECK_THAT(metrics_text(scheduled, MetricsFormat::kPrometheus),
             Contains(",scheduler_job=\"4711\",version="));
}

TEST_CASE("what was not measured has no sample") {
  JobInspection job = job_of(1, 1);
  job.nodes[0].usage = {};
  job.nodes[0].clock = {};
  job.job.traffic = {};
  job.nodes[0].usage.memory.limit = std::numeric_limits<std::int64_t>::max();  // none
  job.ranks[0].process = {};
  job.ranks[0].calls = {};
  job.ranks[0].last_event = -1;
  const std::string text = metrics_text(job, MetricsFormat::kPrometheus);
  CHECK_THAT(text, !Contains("_bytes") && !Contains("ddlrun_rank_") && !Contains("ddlrun_host_") &&
                       !Contains("ddlrun_gpu_"));
  job.nodes[0].silence = "it is lost";
  CHECK_THAT(metrics_text(job, MetricsFormat::kPrometheus), Contains("state=\"silent\"} 1\n"));
}

TEST_CASE("of many ranks, sums are told") {
  const JobInspection job = job_of(16, 512);
  const std::string by_host = metrics_text(job, MetricsFormat::kPrometheus);
  CHECK_THAT(by_host,
             !Contains("ddlrun_rank_resident_bytes{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank"));
  CHECK_THAT(by_host,
             Contains("ddlrun_rank_steps_total{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node15\"} 224\n"));
  CHECK_THAT(by_host, Contains("host=\"node0\"} 1020\n"));  // the latest event of its ranks
  CHECK_THAT(metrics_text(job, MetricsFormat::kPrometheus, MetricsDetail::kJob),
             Contains("ddlrun_rank_steps_total{jobid=\"ddlrun-4711-0f3c9a1b\"} 3584\n") &&
                 Contains("ddlrun_rank_peak_bytes{jobid=\"ddlrun-4711-0f3c9a1b\"} 8703\n") &&  // of all ranks
                 Contains("ddlrun_gpu_utilization_ratio{jobid=\"ddlrun-4711-0f3c9a1b\"} 0.5\n") &&
                 Contains("ddlrun_gpu_energy_joules_total{jobid=\"ddlrun-4711-0f3c9a1b\"} 960\n") &&
                 Contains("ddlrun_host_clock_offset_seconds{jobid=\"ddlrun-4711-0f3c9a1b\"} -0.5\n"));
  CHECK_THAT(metrics_text(job, MetricsFormat::kPrometheus, MetricsDetail::kRank), Contains("rank=\"511\""));
  for (const int hosts : {100, 1000, 10'000})
    CHECK(num_samples(metrics_text(job_of(hosts, 10'000), MetricsFormat::kPrometheus)) <=
          ddl::report::kMostSeries);
}

TEST_CASE("how values are spread over the ranks is told of large jobs, too, and which ranks are slowest") {
  JobInspection job = job_of(100, 1000);
  for (InspectedRank& rank : job.ranks) {
    rank.process.cpu_seconds = 1000 - rank.rank;
    rank.calls.sums[0].wait_seconds = rank.rank;
    rank.calls.steps = rank.rank == 7 ? 5 : 6;
  }
  for (const MetricsDetail detail : {MetricsDetail::kAuto, MetricsDetail::kJob, MetricsDetail::kRank}) {
    const std::string text = metrics_text(job, MetricsFormat::kPrometheus, detail);
    for (const char* const line :
         {"ddlrun_ranks_cpu_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"min\"} 1\n",
          "ddlrun_ranks_cpu_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"median\"} 501\n",
          "ddlrun_ranks_wait_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"p95\"} 950\n",
          "ddlrun_ranks_wait_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"max\"} 999\n",
          "ddlrun_ranks_steps{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"min\"} 5\n",
          "ddlrun_ranks_resident_bytes{jobid=\"ddlrun-4711-0f3c9a1b\",statistic=\"max\"} 4096\n",
          "ddlrun_slowest_ranks_wait_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"7\"} 7\n"})
      CHECK_THAT(text, Contains(line));
    CHECK_THAT(
        text,
        !Contains(
            "ddlrun_slowest_ranks_wait_seconds{jobid=\"ddlrun-4711-0f3c9a1b\",host=\"node0\",rank=\"8\"}"));
  }
  job.ranks[3].calls.sums.clear();
  CHECK_THAT(metrics_text(job, MetricsFormat::kPrometheus, MetricsDetail::kJob), !Contains(",rank=\"3\"} "));
}

TEST_CASE("processes of an elastic job that share a host have its numbers once") {
  JobInspection job = job_of(2, 2);
  job.job.generation = 3;
  job.nodes[1].name = job.nodes[0].name;
  job.nodes[1].usage.gpus[1].name = "GPU-other";
  const std::string text = metrics_text(job, MetricsFormat::kPrometheus, MetricsDetail::kJob);
  CHECK_THAT(text, Contains("ddlrun_gpu_utilization_ratio{jobid=\"ddlrun-4711-0f3c9a1b\"} 0.41") &&
                       Contains("direction=\"receive\"} 10\n") && Contains("ddlrun_generation{") &&
                       Contains("} 3\n"));
}

TEST_CASE("names follow the rules of Prometheus") {
  std::set<std::string_view> names;
  for (const auto& family : metric_families()) {
    CAPTURE(family.name);
    CHECK(names.insert(family.name).second);
    CHECK(family.name.starts_with("ddlrun_"));
    CHECK_FALSE(family.name.ends_with("_total"));
    CHECK((family.unit.empty() || family.name.ends_with("_" + std::string(family.unit))));
    CHECK_FALSE(family.help.empty());
    CHECK_FALSE(family.help.ends_with('.'));
    for (const std::string_view label : ddl::split(family.labels, ' '))
      CHECK((label != "job" && label != "instance"));
  }
}
