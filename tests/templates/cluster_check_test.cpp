#include "templates/cluster/cluster_check.h"

#include "support/catch.h"

using namespace ddl::templates;

namespace {

/// Two nodes without GPUs and two with 8 each, as tests/cluster has them.
ClusterFacts four_nodes() {
  ClusterFacts facts;
  facts.name = "ddl";
  facts.partitions = {{"gpu", false, true, std::nullopt, 60, std::nullopt, 2, 256},
                      {"main", true, true, 3, 26 * 60, std::nullopt, 4, 272}};
  facts.nodes = {{"node1", 2, {"main"}, 8, 0, 16000, {}}, {"node3", 2, {"gpu", "main"}, 128, 8, 480000, {}}};
  return facts;
}

ClusterRequest on(const std::string& partition, int nodes = 1) {
  ClusterRequest request;
  request.partition = partition;
  request.nodes = nodes;
  return request;
}

/// "rule: sentence", one a line.
std::string objections(const ClusterFacts& facts, const ClusterRequest& request) {
  std::string text;
  for (const ClusterObjection& objection : check_against(facts, request))
    text += (text.empty() ? "" : "\n") + objection.rule + ": " + objection.sentence;
  return text;
}

}  // namespace

TEST_CASE("a request that the cluster can meet has no objection") {
  ClusterRequest request = on("gpu", 2);
  request.gpus_per_node = 8;
  request.cpus_per_node = 128;
  request.minutes = 60;
  request.memory_mb_per_node = 480000;
  CHECK(objections(four_nodes(), request).empty());
  CHECK(objections(four_nodes(), on("")).empty());
  CHECK(objections(four_nodes(), on("main", 3)).empty());
}

TEST_CASE("a partition that does not exist") {
  CHECK(objections(four_nodes(), on("gpus")) ==
        "no-such-partition: cluster ddl has no partition gpus; did you mean gpu?");
  CHECK(objections(four_nodes(), on("GPU")) ==
        "no-such-partition: cluster ddl has no partition GPU; did you mean gpu?");
  CHECK(objections(four_nodes(), on("maim")) ==
        "no-such-partition: cluster ddl has no partition maim; did you mean main?");
  ClusterFacts facts = four_nodes();
  facts.name.clear();
  CHECK(objections(facts, on("standard")) ==
        "no-such-partition: this cluster has no partition standard; it has gpu, main");
  facts.partitions[1].is_default = false;
  CHECK(objections(facts, on("")) ==
        "no-such-partition: no partition was named, and this cluster has no default one; name one of gpu, "
        "main");
  for (int i = 0; i < 100; ++i) facts.partitions.push_back({"p" + std::to_string(i)});
  CHECK(objections(facts, on("standard")).ends_with("p8, p9 and 90 more"));
}

TEST_CASE("a partition that is down") {
  ClusterFacts facts = four_nodes();
  facts.partitions[0].is_up = false;
  CHECK(objections(facts, on("gpu")) ==
        "partition-down: partition gpu is not up: Slurm starts no job there at the moment");
}

TEST_CASE("more nodes than exist, or than a job may have") {
  CHECK(objections(four_nodes(), on("gpu", 3)) ==
        "too-many-nodes: 3 nodes were asked for, and partition gpu has 2");
  CHECK(objections(four_nodes(), on("", 4)) ==
        "too-many-nodes: 4 nodes were asked for, and partition main gives a job 3 at most");
  ClusterRequest request = on("main", 3);
  request.gpus_per_node = 8;
  request.cpus_per_node = 56;
  CHECK(objections(four_nodes(), request) ==
        "too-many-nodes: 3 nodes with 8 GPUs and 56 CPUs each were asked for, and partition main has 2 such "
        "nodes");
}

TEST_CASE("more GPUs than a node has") {
  ClusterRequest request = on("gpu");
  request.gpus_per_node = 9;
  CHECK(objections(four_nodes(), request) ==
        "no-node-with-so-many-gpus: 9 GPUs on each node were asked for, and a node of partition gpu has 8 "
        "GPUs at most");
  ClusterFacts facts = four_nodes();
  facts.nodes[1].partitions = {"gpu"};
  request = on("main");
  request.gpus_per_node = 1;
  CHECK(
      objections(facts, request) ==
      "no-node-with-so-many-gpus: 1 GPU on each node was asked for, and a node of partition main has no GPU; "
      "partition gpu has such nodes");
}

TEST_CASE("more CPUs or memory than a node has") {
  ClusterRequest request = on("gpu");
  request.cpus_per_node = 256;
  request.memory_mb_per_node = 500000;
  CHECK(objections(four_nodes(), request) ==
        "too-many-cpus-per-node: 256 CPUs on each node were asked for, and a node of partition gpu has 128 "
        "CPUs at most\n"
        "too-much-memory: 500000 MB of memory on each node was asked for, and a node of partition gpu has "
        "480000 MB of memory at most");
}

TEST_CASE("nodes that have each requested resource, but none has all of them") {
  ClusterFacts facts = four_nodes();
  facts.nodes[0].memory_mb = 1'000'000;
  ClusterRequest request = on("main");
  request.gpus_per_node = 8;
  request.memory_mb_per_node = 900'000;
  CHECK(objections(facts, request) ==
        "too-many-nodes: 1 node with 8 GPUs and 900000 MB of memory was asked for, and partition main has no "
        "such node");
}

TEST_CASE("more time than a job may have") {
  ClusterRequest request = on("gpu");
  request.minutes = 61;
  CHECK(objections(four_nodes(), request) ==
        "above-the-time-limit: a time of 1 hour 1 minute was asked for, and partition gpu gives a job 1 hour "
        "at most");
  request = on("main");
  request.minutes = 2 * 24 * 60 + 125;
  CHECK(objections(four_nodes(), request) ==
        "above-the-time-limit: a time of 2 days 2 hours 5 minutes was asked for, and partition main gives a "
        "job "
        "1 day 2 hours at most");
  ClusterFacts facts = four_nodes();
  facts.partitions[1].max_minutes.reset();
  CHECK(objections(facts, request).empty());
}

TEST_CASE("of several partitions one is enough") {
  ClusterRequest request = on("gpu,main");
  request.minutes = 120;
  CHECK(objections(four_nodes(), request).empty());
  request.minutes = 10'000;
  CHECK(check_against(four_nodes(), request).size() == 1);
  CHECK(objections(four_nodes(), on("gpu,mian")) ==
        "no-such-partition: cluster ddl has no partition mian; did you mean main?");
}

TEST_CASE("unknown nodes cause no objection") {
  ClusterFacts facts = four_nodes();
  facts.nodes.clear();
  ClusterRequest request = on("gpu", 2);
  request.gpus_per_node = 100;
  CHECK(objections(facts, request).empty());
}
