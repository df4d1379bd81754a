#include "launcher/plan/launch_plan.h"

#include "base/text.h"
#include "launcher/facts.h"
#include "launcher/output/output_stream.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using ddl::launcher::test::allocation_of;
using ddl::launcher::test::facts_of;
using ddl::launcher::test::inherited;
using ddl::launcher::test::job_of;

namespace {

LaunchPlan plan_of(const JobSpec& spec, const std::vector<int>& slots, const Environment& head = {}) {
  const auto placement = place(spec, allocation_of(slots.size()), slots);
  REQUIRE(placement);
  return make_launch_plan(spec, {*placement, facts_of(*placement, 4), "ddlrun-1-2", {}, no_scheduler()},
                          head);
}

std::string text_of(const Environment& environment, const std::string& indent) {
  std::string text;
  for (const auto& [name, value] : environment) text += indent + name + "=" + value + "\n";
  return text;
}

std::string text_of(const LaunchPlan& plan, std::size_t index) {
  const JobLaunch& job = plan.job;
  const NodeLaunch& node = plan.nodes.at(index);
  std::vector<std::string> names = job.node_names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] += ":";
    for (const int rank : job.node_ranks[i]) names[i] += " " + std::to_string(rank);
  }
  std::string text = "node " + std::to_string(node.node_index) + " of job " + job.job_id + ", " +
                     std::to_string(job.num_ranks) + " ranks: " + ddl::join(names, ", ") + "\n";
  text += "  " + ddl::join(job.command, " ") + " in " + job.workdir + "\n";
  text += text_of(inherited(plan, index), "  ");
  for (const RankLaunch& rank : node.ranks) {
    text += "  rank " + std::to_string(rank.rank) + ", local " + std::to_string(rank.local_rank) +
            (rank.reads_stdin ? ", reads stdin" : "") + "\n" + text_of(rank.environment, "    ");
  }
  return text;
}

/// The ranks that read standard input, such as "0 2".
std::string stdin_readers(const LaunchPlan& plan) {
  std::vector<std::string> readers;
  for (const NodeLaunch& node : plan.nodes) {
    for (const RankLaunch& rank : node.ranks) {
      if (rank.reads_stdin) readers.push_back(std::to_string(rank.rank));
    }
  }
  return ddl::join(readers, " ");
}

}  // namespace

TEST_CASE("the whole plan of three ranks on two nodes") {
  JobSpec spec = job_of(3);
  spec.exports = {{"LR", "0.1"}};
  spec.framework = Framework::kMpi;
  const LaunchPlan plan =
      plan_of(spec, {2, 2}, {{"PATH", "/bin"}, {"PMIX_RANK", "9"}, {"PWD", "/elsewhere"}});
  REQUIRE(plan.nodes.size() == 2);
  CHECK(text_of(plan, 0) == R"(node 0 of job ddlrun-1-2, 3 ranks: node0: 0 1, node1: 2
  ./train --fast in /data/run 1
  DDL_LIBRARY=/usr/lib/libddl.so.0.1.0
  HOROVOD_HOSTNAME=node0.site
  HOROVOD_LOCAL_SIZE=2
  HOROVOD_SIZE=3
  LR=0.1
  OMPI_MCA_ess=^singleton
  OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_orte_externally_bound=1
  OMPI_MCA_schizo=^orte,slurm
  PATH=/bin
  PWD=/data/run 1
  PYTHONUNBUFFERED=1
  rank 0, local 0, reads stdin
    HOROVOD_CROSS_RANK=0
    HOROVOD_CROSS_SIZE=2
    HOROVOD_LOCAL_RANK=0
    HOROVOD_RANK=0
    OMP_NUM_THREADS=2
  rank 1, local 1
    HOROVOD_CROSS_RANK=0
    HOROVOD_CROSS_SIZE=1
    HOROVOD_LOCAL_RANK=1
    HOROVOD_RANK=1
    OMP_NUM_THREADS=2
)");
  CHECK(text_of(plan, 1) == R"(node 1 of job ddlrun-1-2, 3 ranks: node0: 0 1, node1: 2
  ./train --fast in /data/run 1
  DDL_LIBRARY=/usr/lib/libddl.so.0.1.0
  HOROVOD_HOSTNAME=node1.site
  HOROVOD_LOCAL_SIZE=1
  HOROVOD_SIZE=3
  LR=0.1
  OMPI_MCA_ess=^singleton
  OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_orte_externally_bound=1
  OMPI_MCA_schizo=^orte,slurm
  PATH=/bin
  PWD=/data/run 1
  PYTHONUNBUFFERED=1
  rank 2, local 0
    HOROVOD_CROSS_RANK=1
    HOROVOD_CROSS_SIZE=2
    HOROVOD_LOCAL_RANK=0
    HOROVOD_RANK=2
    OMP_NUM_THREADS=4
)");
}

TEST_CASE("an agent watches the ports that are told to ranks, if it starts all processes of the ranks") {
  const auto watched = [](Framework framework, bool starts_mpirun = false) {
    JobSpec spec = job_of(3);
    spec.framework = framework;
    spec.starts_mpirun = starts_mpirun;
    const LaunchPlan plan = plan_of(spec, {2, 2});
    CHECK(plan.nodes[1].server_ports.empty());
    return plan.nodes[0].server_ports;
  };
  using Ports = std::vector<int>;
  CHECK(watched(Framework::kAuto) == Ports{40004, 50004});
  CHECK(watched(Framework::kTorch) == Ports{40004});
  CHECK(watched(Framework::kMxnet) == Ports{40004});
  CHECK(watched(Framework::kJax) == Ports{50004});
  CHECK(watched(Framework::kMpi).empty());
  CHECK(watched(Framework::kAuto, true).empty());
}

TEST_CASE("with --as-horovod the folder of each node's package horovod comes first in PYTHONPATH") {
  JobSpec spec = job_of(2);
  const Environment head{{"PYTHONPATH", "/home/me"}};
  CHECK(inherited(plan_of(spec, {1, 1}, head), 1).at("PYTHONPATH") == "/home/me");
  spec.as_horovod = true;
  CHECK(inherited(plan_of(spec, {1, 1}), 1).at("PYTHONPATH") == "/usr/share/ddlrun/as-horovod");
  const auto placement = place(spec, allocation_of(2), {1, 1});
  REQUIRE(placement);
  std::vector<NodeFacts> facts = facts_of(*placement, 4);
  CHECK(check_horovod(spec, *placement, facts));
  facts[1].horovod = "/opt/ddlrun/share/ddlrun/as-horovod";
  const LaunchPlan plan = make_launch_plan(spec, {*placement, facts, "ddlrun-1-2", {}, no_scheduler()}, head);
  CHECK(inherited(plan, 0).at("PYTHONPATH") == "/usr/share/ddlrun/as-horovod:/home/me");
  CHECK(inherited(plan, 1).at("PYTHONPATH") == "/opt/ddlrun/share/ddlrun/as-horovod:/home/me");
  spec.exports = {{"PYTHONPATH", "/data"}};
  CHECK(inherited(plan_of(spec, {1, 1}, head), 1).at("PYTHONPATH") == "/usr/share/ddlrun/as-horovod:/data");

  facts[1].horovod.clear();
  const ddl::Status missing = check_horovod(spec, *placement, facts);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message().starts_with("node1: its ddlrun has no package horovod"));
  spec.as_horovod = false;
  CHECK(check_horovod(spec, *placement, facts));
}

TEST_CASE("standard input goes to rank 0, to all, or to none") {
  JobSpec spec = job_of(3);
  CHECK(stdin_readers(plan_of(spec, {2, 2})) == "0");
  spec.stdin_target = StdinTarget::kAll;
  CHECK(stdin_readers(plan_of(spec, {2, 2})) == "0 1 2");
  spec.stdin_target = StdinTarget::kNone;
  CHECK(stdin_readers(plan_of(spec, {2, 2})).empty());
}

TEST_CASE("only the output of a single rank without tag and time stamp is forwarded raw") {
  const auto splits = [](int num_ranks, bool tag, bool timestamp) {
    JobSpec spec = job_of(num_ranks);
    spec.tag_output = tag;
    spec.timestamp_output = timestamp;
    return plan_of(spec, {4}).job.split_lines;
  };
  CHECK_FALSE(splits(1, false, false));
  CHECK(splits(1, true, false));
  CHECK(splits(1, false, true));
  CHECK(splits(2, false, false));  // one rank's bytes must not get into the other's line
}

TEST_CASE("grace and output window reach every agent") {
  JobSpec spec = job_of(300);
  spec.kill_grace_seconds = 0.25;
  const JobLaunch job = plan_of(spec, {100, 100, 100}).job;
  CHECK(job.kill_grace_seconds == 0.25);
  CHECK(job.output_window == static_cast<int>(output_window(300)));
  CHECK_FALSE(job.flush_idle_lines);
}

TEST_CASE("with any distribution, the agents together start every rank once and agree about the job") {
  const std::vector<std::vector<int>> shapes = {{1}, {3}, {1, 1}, {2, 0, 3}, {7, 1, 2}, {1, 1, 1, 1, 1}};
  for (const auto& slots : shapes) {
    int total = 0;
    for (const int count : slots) total += count;
    for (int num_ranks = 1; num_ranks <= total + 3; ++num_ranks) {
      CAPTURE(slots, num_ranks);
      JobSpec spec = job_of(num_ranks);
      spec.oversubscribe = true;
      const LaunchPlan plan = plan_of(spec, slots);
      std::vector<int> started(static_cast<std::size_t>(num_ranks), 0);
      for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        const NodeLaunch& node = plan.nodes[i];
        REQUIRE(plan.job.num_ranks == num_ranks);
        REQUIRE(node.node_index == static_cast<int>(i));
        std::vector<int> here;
        for (const RankLaunch& rank : node.ranks) {
          REQUIRE(rank.local_rank == static_cast<int>(here.size()));
          REQUIRE(rank.environment.at("RANK") == std::to_string(rank.rank));
          REQUIRE(environment_of(plan.job, node, rank).at("MASTER_PORT") == "40004");
          here.push_back(rank.rank);
          ++started[static_cast<std::size_t>(rank.rank)];
        }
        REQUIRE(here == plan.job.node_ranks[i]);
      }
      REQUIRE(started == std::vector<int>(static_cast<std::size_t>(num_ranks), 1));
    }
  }
}
