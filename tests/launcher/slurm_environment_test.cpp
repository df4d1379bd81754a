// Ranks in a Slurm job get the variables that srun would set, and the GPUs of their own node.
#include "launcher/plan/rank_environment.h"

#include "launcher/facts.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/scheduler/slurm.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

struct Planned {
  JobSpec spec = job_of(5);
  Placement placement = *place(spec, allocation_of(2), {3, 2});
  std::vector<NodeFacts> facts = facts_of(placement, 4);
  LaunchPlan plan(const Environment& head) const {
    return make_launch_plan(spec, {placement, facts, "ddlrun-1-2", {}, slurm()}, head);
  }
};

}  // namespace

TEST_CASE("size, nodes and task numbers are those of ddlrun's job") {
  const LaunchPlan plan =
      Planned().plan({{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "9"}});
  const Environment& common = inherited(plan, 1);
  CHECK(common.at("SLURM_JOB_ID") == "9");
  CHECK(common.at("SLURM_NTASKS") == "5");
  CHECK(common.at("SLURM_NPROCS") == "5");
  CHECK(common.at("SLURM_STEP_NUM_TASKS") == "5");
  CHECK(common.at("SLURM_STEP_NUM_NODES") == "2");
  CHECK(common.at("SLURM_NODELIST") == "node0,node1");
  CHECK(common.at("SLURM_TASKS_PER_NODE") == "3,2");
  const Environment& last = plan.nodes[1].ranks[1].environment;
  CHECK(last.at("SLURM_PROCID") == "4");
  CHECK(last.at("SLURM_LOCALID") == "1");
  CHECK(last.at("SLURM_NODEID") == "1");
  CHECK(last.at("SLURM_GTIDS") == "3,4");
}

TEST_CASE("variables of another process are removed, and each node has its own values") {
  const LaunchPlan plan = Planned().plan({{"SLURM_CPU_BIND", "mask_cpu:0x1"},
                                          {"SLURM_CPU_BIND_TYPE", "mask_cpu:"},
                                          {"SLURM_MEM_BIND", "local"},
                                          {"SLURM_PMIX_MAPPING_SERV", "x"},
                                          {"SLURM_TASK_PID", "77"},
                                          {"PMIX_RANK", "0"}});
  for (const char* name : {"SLURM_CPU_BIND", "SLURM_CPU_BIND_TYPE", "SLURM_MEM_BIND",
                           "SLURM_PMIX_MAPPING_SERV", "SLURM_TASK_PID", "PMIX_RANK"})
    CHECK_FALSE(inherited(plan, 0).contains(name));
  const auto& own = plan.job.login_variables;
  CHECK(std::find(own.begin(), own.end(), "SLURM_STEP_ID") != own.end());
}

TEST_CASE("ranks that are not Slurm tasks get no variables of another task") {
  // The variables of a batch script, with ranks that are started by ssh, fork or mpirun.
  const Environment head = {{"SLURM_JOB_ID", "9"},           {"SLURM_JOB_NODELIST", "node[0-1]"},
                            {"SLURM_CPUS_PER_TASK", "2"},    {"SLURM_NTASKS", "3"},
                            {"SLURM_NTASKS_PER_NODE", "2"},  {"SLURM_NPROCS", "3"},
                            {"SLURM_PROCID", "0"},           {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "0"},           {"SLURM_GTIDS", "0"},
                            {"SLURM_STEP_NUM_TASKS", "2"},   {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                            {"SLURM_TASKS_PER_NODE", "2,1"}, {"SLURM_TASK_PID", "5"},
                            {"SLURM_PTY_PORT", "4711"},      {"SLURM_CPU_BIND", "none"}};
  const Planned job;
  const LaunchPlan plan =
      make_launch_plan(job.spec, {job.placement, job.facts, "ddlrun-1-2", {}, no_scheduler()}, head);
  std::vector<std::string> names;
  for (const auto& [name, value] : inherited(plan, 0)) {
    if (name.starts_with("SLURM")) names.push_back(name);
  }
  CHECK(names == std::vector<std::string>{"SLURM_CPUS_PER_TASK", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"});
  const Environment& rank = plan.nodes[0].ranks[0].environment;
  CHECK(
      std::none_of(rank.begin(), rank.end(), [](const auto& one) { return one.first.starts_with("SLURM"); }));
  // Variables of a step about its node differ on other nodes.
  const auto& own = plan.job.login_variables;
  CHECK(std::find(own.begin(), own.end(), "SLURMD_NODENAME") != own.end());
  Planned wanted;
  wanted.spec.exports = {{"SLURM_NTASKS", "12"}, {"SLURM_PROCID", std::nullopt}};
  const LaunchPlan asked =
      make_launch_plan(wanted.spec, {wanted.placement, wanted.facts, "ddlrun-1-2", {}, no_scheduler()}, head);
  CHECK(inherited(asked, 0).at("SLURM_NTASKS") == "12");
  CHECK(inherited(asked, 0).at("SLURM_PROCID") == "0");
}

TEST_CASE("SLURM_NTASKS_PER_NODE is set if all nodes have the same number of ranks") {
  Planned job;
  CHECK_FALSE(inherited(job.plan({{"SLURM_NTASKS_PER_NODE", "7"}}), 0).contains("SLURM_NTASKS_PER_NODE"));
  job.spec = job_of(4);
  job.placement = *place(job.spec, allocation_of(2), {2, 2});
  CHECK(inherited(job.plan({{"SLURM_NTASKS_PER_NODE", "7"}}), 0).at("SLURM_NTASKS_PER_NODE") == "2");
}

TEST_CASE("GPUs are those that Slurm has left to each node's agent, unless -x names others") {
  Planned job;
  job.facts[0].visible_devices = {{"ROCR_VISIBLE_DEVICES", "0,1"}, {"GPU_DEVICE_ORDINAL", "0,1"}};
  job.facts[1].visible_devices = {{"ROCR_VISIBLE_DEVICES", "2,3"}};
  const Environment head = {{"ROCR_VISIBLE_DEVICES", "0,1,2,3"}, {"CUDA_VISIBLE_DEVICES", "7"}};
  const LaunchPlan plan = job.plan(head);
  CHECK(inherited(plan, 0).at("ROCR_VISIBLE_DEVICES") == "0,1");
  CHECK(inherited(plan, 1).at("ROCR_VISIBLE_DEVICES") == "2,3");
  CHECK_FALSE(inherited(plan, 1).contains("CUDA_VISIBLE_DEVICES"));
  job.spec.exports = {{"ROCR_VISIBLE_DEVICES", "5"}};
  CHECK(inherited(job.plan(head), 1).at("ROCR_VISIBLE_DEVICES") == "5");
}

TEST_CASE("ranks that are given GPUs get exactly one variable for them") {
  Planned job;
  job.facts[0].visible_devices = {
      {"ROCR_VISIBLE_DEVICES", "2,3,4"}, {"CUDA_VISIBLE_DEVICES", "2,3,4"}, {"GPU_DEVICE_ORDINAL", "2,3,4"}};
  std::vector<NodeBinding> bindings(2);
  for (int rank = 0; rank < 3; ++rank) {
    ddl::affinity::RankBinding& binding = bindings[0].plan.ranks.emplace_back();
    binding.local_rank = rank;
    binding.cpus = ddl::CpuSet::of({rank});
    binding.gpus = {{rank + 2, ddl::affinity::GpuVendor::kAmd, "", "", std::to_string(rank + 2)}};
  }
  const LaunchPlan plan =
      make_launch_plan(job.spec, {job.placement, job.facts, "ddlrun-1-2", bindings, slurm()}, {});
  CHECK(plan.nodes[0].ranks[1].environment.at("ROCR_VISIBLE_DEVICES") == "3");
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"})
    CHECK_FALSE(inherited(plan, 0).contains(name));
}
