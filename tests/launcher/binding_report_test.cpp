#include "launcher/head/reports.h"

#include <cerrno>

#include "base/text.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::affinity;
using namespace ddl::launcher;

namespace {

LaunchPlan plan_of_two() {
  NodeLaunch node;
  node.ranks.resize(2);
  node.ranks[1].rank = 1;
  node.ranks[0].cpus = CpuSet::range(0, 7);
  node.ranks[1].cpus = CpuSet::range(8, 15);
  node.ranks[1].memory_nodes = {1};
  LaunchPlan plan;
  plan.job.node_names = {"node1"};
  plan.nodes = {node};
  return plan;
}

/// The same, where rank 1 has these GPUs.
BindingReport report_with_gpus(const std::vector<AssignedGpu>& gpus) {
  LaunchPlan plan = plan_of_two();
  plan.nodes[0].ranks[1].local_rank = 1;
  plan.nodes[0].ranks[1].environment = {{"CUDA_VISIBLE_DEVICES", "1"}};
  NodeBinding binding;
  binding.plan.ranks.resize(2);
  binding.plan.ranks[1].gpus = gpus;
  return {plan, {binding}};
}

AssignedGpu gpu(const char* bus_id, const char* uuid = "") {
  return {0, GpuVendor::kNvidia, bus_id, uuid, ""};
}

message::VisibleGpus sees(std::vector<SeenGpu> gpus) { return {1, true, std::move(gpus), ""}; }

message::RankBound bound(int rank, const CpuSet& cpus, int cpu_error = 0, int memory_error = 0) {
  return {rank, {cpus, "prefer (many):1", "ROCR_VISIBLE_DEVICES=1"}, cpu_error, memory_error};
}

}  // namespace

TEST_CASE("ranks are reported in their order once all were added") {
  BindingReport report(plan_of_two(), {});
  CHECK(report.add(bound(1, CpuSet::range(8, 15))).empty());
  CHECK(ddl::join(report.add({0, {CpuSet::of({3}), "", ""}, 0, 0}), "\n") ==
        "rank 0 on node1: CPU 3 (planned: 0-7)\n"
        "rank 1 on node1: CPUs 8-15 as planned, memory prefer (many):1, ROCR_VISIBLE_DEVICES=1");
  CHECK(report.take().empty());
  CHECK(report.ranks().at(1).planned == CpuSet::range(8, 15));
  CHECK(report.ranks().at(1).kernel.devices == "ROCR_VISIBLE_DEVICES=1");
  CHECK(report.ranks().at(1).difference.empty());
  CHECK_THAT(report.ranks().at(0).difference, Catch::Contains("rank 0 on node1 may run on 3"));
  CHECK(report.add({0, {}, 0, 0}).empty());
  CHECK(ddl::join(report.take(), "\n") == "rank 0 on node1: it ended before its binding could be read");
}

TEST_CASE("a difference from the plan is reported with rank, host and reason") {
  const BindingReport report(plan_of_two(), {});
  CHECK(report.difference(bound(1, CpuSet::range(8, 15))).empty());
  CHECK(report.difference(bound(1, {})).empty());
  CHECK(report.difference(bound(1, CpuSet::range(0, 15))) ==
        "rank 1 on node1 may run on 0-15, but 8-15 was planned: something has changed its binding");
  CHECK_THAT(report.difference(bound(1, CpuSet::range(0, 15), EPERM)),
             Catch::Contains("rank 1 on node1 could not be bound to CPUs 8-15: Operation not permitted"));
  CHECK_THAT(report.difference(bound(1, CpuSet::range(8, 11), EINVAL)), Catch::Contains("cgroup"));
  CHECK_THAT(report.difference(bound(1, CpuSet::range(8, 15), 0, EPERM)),
             Catch::Contains("memory of NUMA nodes 1"));
}

TEST_CASE("a rank with GPUs is reported with those that it sees, once they are known") {
  BindingReport report = report_with_gpus({gpu("0000:c2:00.0")});
  CHECK(report.add(bound(0, CpuSet::range(0, 7))).empty());
  CHECK(report.add(bound(1, CpuSet::range(8, 15))).empty());
  const auto lines = report.add(sees({{"0000:c2:00.0", "GPU-b"}}));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::EndsWith("ROCR_VISIBLE_DEVICES=1"));
  CHECK_THAT(lines[1], Catch::EndsWith("ROCR_VISIBLE_DEVICES=1, GPU-b at 0000:c2:00.0 as planned"));
  REQUIRE(report.ranks().at(1).gpus);
  CHECK(report.ranks().at(1).gpus->front() == SeenGpu{"0000:c2:00.0", "GPU-b"});
  CHECK_FALSE(report.ranks().at(0).gpus);

  BindingReport before = report_with_gpus({gpu("0000:c2:00.0")});
  CHECK(before.add(sees({{"0000:c2:00.0", ""}})).empty());
  CHECK(before.add(bound(1, CpuSet::range(8, 15))).empty());
  CHECK_THAT(before.take().at(0), Catch::EndsWith(", a GPU at 0000:c2:00.0 as planned"));
}

TEST_CASE("GPUs that are not known are no difference, and without a runtime nothing is said of them") {
  const auto line = [](const message::VisibleGpus& answer) {
    BindingReport report = report_with_gpus({gpu("0000:c2:00.0")});
    CHECK(report.difference(answer).empty());
    (void)report.add(bound(0, CpuSet::range(0, 7)));
    (void)report.add(bound(1, CpuSet::range(8, 15)));
    const auto lines = report.add(answer);
    CHECK_FALSE(report.ranks().at(1).gpus);
    return lines.at(1);
  };
  CHECK_THAT(line({1, false, {}, ""}), Catch::EndsWith("ROCR_VISIBLE_DEVICES=1"));
  CHECK_THAT(line({1, false, {}, "cuInit fails with 803"}),
             Catch::EndsWith("ROCR_VISIBLE_DEVICES=1, its GPUs are not known: cuInit fails with 803"));
}

TEST_CASE("a rank that sees other GPUs than planned is reported with both") {
  BindingReport one = report_with_gpus({gpu("0000:c2:00.0")});
  CHECK_THAT(one.difference(sees({{"0000:c1:00.0", "GPU-a"}})),
             Catch::StartsWith("rank 1 on node1 sees GPU 0000:c1:00.0, but GPU 0000:c2:00.0 was planned: "));
  CHECK_THAT(one.difference(sees({})),
             Catch::StartsWith("rank 1 on node1 sees no GPU, but GPU 0000:c2:00.0 was planned: "));
  CHECK_FALSE(one.difference(sees({{"0000:c2:00.0", ""}, {"0000:c3:00.0", ""}})).empty());
  (void)one.add(bound(0, CpuSet::range(0, 7)));
  (void)one.add(bound(1, CpuSet::range(0, 15)));
  CHECK_THAT(one.add(sees({})).at(1), Catch::EndsWith(", no GPU (planned: 0000:c2:00.0)"));
  CHECK_THAT(one.ranks().at(1).difference,
             Catch::Contains("has changed its binding; rank 1 on node1 sees no"));

  const BindingReport two = report_with_gpus({gpu("0000:c2:00.0"), gpu("0000:c1:00.0")});
  CHECK(two.difference(sees({{"0000:c2:00.0", ""}, {"0000:c1:00.0", ""}})).empty());
  CHECK_FALSE(two.difference(sees({{"0000:c1:00.0", ""}, {"0000:c2:00.0", ""}})).empty());
  // Partitions of a GPU share its address, and instances of one are told apart by their UUIDs.
  const BindingReport part = report_with_gpus({gpu("0000:c2:00.3", "GPU-1")});
  CHECK(part.difference(sees({{"0000:c2:00.0", "GPU-2"}})).empty());
  const BindingReport instance = report_with_gpus({gpu("0000:c2:00.0", "MIG-1")});
  CHECK(instance.difference(sees({{"0000:c2:00.0", "MIG-1"}})).empty());
  CHECK_FALSE(instance.difference(sees({{"0000:c2:00.0", "MIG-2"}})).empty());
  CHECK(report_with_gpus({gpu("")}).difference(sees({{"0000:c9:00.0", ""}})).empty());
}
