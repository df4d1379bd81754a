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
  node.node_names = {"node1"};
  node.ranks.resize(2);
  node.ranks[1].rank = 1;
  node.ranks[0].cpus = CpuSet::range(0, 7);
  node.ranks[1].cpus = CpuSet::range(8, 15);
  node.ranks[1].memory_nodes = {1};
  return {{node}};
}

message::RankBound bound(int rank, const CpuSet& cpus, int cpu_error = 0, int memory_error = 0) {
  return {rank, {cpus, "prefer (many):1", "ROCR_VISIBLE_DEVICES=1"}, cpu_error, memory_error};
}

}  // namespace

TEST_CASE("ranks are reported in their order once all were added") {
  BindingReport report(plan_of_two());
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
  const BindingReport report(plan_of_two());
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
