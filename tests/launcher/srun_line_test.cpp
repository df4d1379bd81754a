// The srun that starts ranks itself.
#include "launcher/mpi/srun_line.h"

#include <algorithm>

#include "affinity/source/node_model.h"
#include "base/text.h"
#include "launcher/facts.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using namespace ddl::launcher::test;
using Catch::Matchers::Contains;

namespace {

/// A node with two NUMA nodes of 4 cores and a GPU each.
NodeFacts gpu_node(const std::string& name, int cores_per_l3 = 4) {
  ddl::affinity::NodeModel model;
  model.numa_per_package = 2;
  model.cores_per_l3 = cores_per_l3;
  model.gpu_numa = {1, 0};
  NodeFacts facts = facts_of(name, 2 * cores_per_l3);
  facts.topology = ddl::affinity::topology_of_model(model, "the test").value();
  return facts;
}

struct SrunCase {
  JobSpec spec = job_of(4);
  Allocation allocation = allocation_of(2);
  std::vector<std::optional<NodeFacts>> known = {gpu_node("node0"), gpu_node("node1")};
  std::vector<std::string> more_options;

  SrunCase() {
    for (AllocatedNode& node : allocation.nodes) node.slots = 2;
    allocation.job = SchedulerJob{"Slurm", "1", {{"node0", 8, 2, 2}, {"node1", 8, 2, 2}}, std::nullopt, ""};
  }
  ddl::Result<SrunLine> line(const Environment& environment = {}, const std::string& mpi = "pmix") const {
    const auto plan = make_dry_plan(spec, allocation, known, facts_of("head", 4), environment);
    REQUIRE(plan);
    return make_srun_line(spec, *allocation.job, *plan, environment, mpi, more_options);
  }
  std::string text() const {
    const auto made = line();
    return made ? ddl::join(made->words, " ") : made.error().message();
  }
};

}  // namespace

TEST_CASE("the options of srun are those of the plan") {
  const SrunCase one;
  CHECK(
      one.text() ==
      "srun --mpi=pmix --nodes=2 --nodelist=node0,node1 --ntasks=4 --ntasks-per-node=2 --distribution=block "
      "--gpus-per-node=2 --cpus-per-task=4 --cpu-bind=mask_cpu:0xf0,0xf --input=0 --label --chdir=/data/run "
      "1 "
      "--kill-on-bad-exit=1 --gpu-bind=none bash -c gpus=(0 1); export CUDA_VISIBLE_DEVICES="
      "\"${gpus[SLURM_LOCALID]}\"; exec \"$@\" bash ./train --fast");
}

TEST_CASE("the options of a job become options and environment of srun") {
  SrunCase one;
  one.more_options = {"--wait=60", "--kill-on-bad-exit=0"};
  CHECK_THAT(one.text(), Contains(" --gpu-bind=none --wait=60 --kill-on-bad-exit=0 bash -c "));
  one.spec.map_by = MapBy::kNode;
  one.spec.stdin_target = StdinTarget::kNone;
  one.spec.tag_output = false;
  one.spec.oversubscribe = true;
  one.spec.exports = {{"LR", "0.1"}, {"HOME", std::nullopt}};
  const auto made = one.line({{"HOME", "/home/me"}, {"SLURM_NTASKS", "7"}}, "");
  REQUIRE(made);
  const std::string text = ddl::join(made->words, " ");
  CHECK_THAT(text, Catch::StartsWith("srun --nodes=2") && Contains("--distribution=cyclic") &&
                       Contains("--overcommit") && Contains("--input=none") && !Contains("--label"));
  CHECK(made->environment == Environment{{"HOME", "/home/me"}, {"LR", "0.1"}});
  one.spec.rank_by = RankBy::kSlot;
  CHECK_THAT(ddl::join(one.line({}, "")->words, " "), Contains("--distribution=block"));
}

TEST_CASE("nodes that were not asked are not bound") {
  SrunCase one;
  one.known = {std::nullopt, std::nullopt};
  CHECK_THAT(one.text(), Contains("--cpus-per-task=4 --cpu-bind=none") && !Contains("bash -c"));
}

TEST_CASE("srun is asked only for CPUs that the job holds, if Slurm does not confine the job to them") {
  // Two tasks of a node with 8 cores, all of which an agent there sees.
  SrunCase shared;
  for (SchedulerNode& node : shared.allocation.job->nodes) node.cpus = 2;
  const auto made = shared.line();
  REQUIRE(made);
  CHECK_THAT(ddl::join(made->words, " "),
             Contains("--ntasks-per-node=2 ") && Contains(" --cpus-per-task=1 ") && !Contains("--cpu-bind"));
  CHECK_THAT(made->note,
             Catch::StartsWith("node0: 2 ranks would be bound to 8 CPUs, but the job holds only 2 of these"));
  // A binding that was asked for is an error, not omitted.
  shared.spec.binding.bind_to = ddl::affinity::BindTo::kNuma;
  CHECK_THAT(shared.text(), Contains("the job holds only 2 of these") && Contains("--cores-per-rank"));
  shared.spec.binding.bind_to = ddl::affinity::BindTo::kCore;
  CHECK_THAT(shared.text(), Contains(" --cpus-per-task=1 --cpu-bind=mask_cpu:0x1,0x10 "));
  shared.spec.binding = {.bind_to = ddl::affinity::BindTo::kNone};
  CHECK_THAT(shared.text(), Contains(" --cpus-per-task=1 --cpu-bind=none "));
  // More ranks than CPUs: they take turns.
  SrunCase crowded;
  crowded.spec.oversubscribe = crowded.spec.binding.oversubscribe = true;
  for (SchedulerNode& node : crowded.allocation.job->nodes) node.cpus = 1;
  CHECK_THAT(crowded.text(), Contains("--overcommit") && !Contains("--cpus-per-task"));
}

TEST_CASE("in the shell of a step, srun does not wait for that step's end") {
  const SrunCase one;
  const auto in_step = one.line({{"SLURM_STEP_ID", "0"}});
  REQUIRE(in_step);
  CHECK_THAT(ddl::join(in_step->words, " "), Contains(" --overlap "));
  CHECK_THAT(one.text(), !Contains("--overlap"));
}

TEST_CASE("a plan that is not possible with one srun is refused") {
  SrunCase uneven;
  uneven.spec.num_ranks = 3;
  CHECK_THAT(uneven.text(), Contains("node1 would have 1 rank and node0 2"));
  SrunCase different;
  different.known[1] = gpu_node("node1", 6);
  different.allocation.job->nodes[1].cpus = 12;
  CHECK_THAT(different.text(), Contains("these nodes differ"));
}

TEST_CASE("srun's ranks get the folder of the package horovod if it is the same on all nodes") {
  SrunCase one;
  one.spec.as_horovod = true;
  one.spec.exports = {{"PYTHONPATH", "/data"}};
  for (auto& facts : one.known) {
    facts->horovod = "/opt/ddlrun/share/ddlrun/as-horovod";
    facts->libddl = "/opt/ddlrun/lib/libddl.so.0";
  }
  const auto made = one.line({{"PYTHONPATH", "/home/me"}});
  REQUIRE(made);
  CHECK(made->environment.at("PYTHONPATH") == "/opt/ddlrun/share/ddlrun/as-horovod:/data");
  CHECK(made->environment.at("DDL_LIBRARY") == "/opt/ddlrun/lib/libddl.so.0");
  one.known[1]->horovod = "/usr/share/ddlrun/as-horovod";
  CHECK_THAT(one.text(), Contains("would be /opt/ddlrun/share/ddlrun/as-horovod:/data on node0 and "
                                  "/usr/share/ddlrun/as-horovod:/data on node1"));
  // --dry-run without --probe.
  one.known = {std::nullopt, std::nullopt};
  CHECK(one.line());
}
