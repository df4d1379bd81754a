#include "launcher/head/generation_reports.h"

#include "support/catch.h"

using namespace ddl::launcher;

namespace {

/// What a launch has used that ran for so long on a host, with these GPUs.
NodeUsage used(double seconds, const std::vector<int>& gpus) {
  NodeUsage usage;
  usage.seconds = seconds;
  usage.networks = {{"eth0", static_cast<std::int64_t>(seconds), 0, 0}};
  for (const int index : gpus) {
    GpuUse& gpu = usage.gpus.emplace_back();
    gpu.index = index;
    gpu.joules = static_cast<std::int64_t>(seconds);
  }
  if (gpus.empty()) usage.gpus_unknown = "it did not answer";
  return usage;
}

}  // namespace

TEST_CASE(
    "of a host's launches the longest has counted most, but each watches the GPUs of its own ranks only") {
  GenerationReports reports;
  reports.add_usage("node1", used(5, {2, 0}));
  reports.add_usage("node1", used(9, {0, 1}));
  reports.add_usage("node1", used(1, {}));
  reports.add_usage("node2", used(3, {}));
  reports.add_usage("node2", used(1, {0}));
  REQUIRE(reports.usages().size() == 2);
  const NodeUsage& usage = reports.usages()[0].usage;
  CHECK(usage.networks[0].received_bytes == 9);
  REQUIRE(usage.gpus.size() == 3);
  CHECK(usage.gpus[0].joules == 9);
  CHECK(usage.gpus[2].index == 2);
  CHECK(usage.gpus[2].joules == 5);
  CHECK(reports.usages()[1].usage.gpus.size() == 1);
  CHECK(reports.usages()[1].usage.gpus_unknown.empty());
}
