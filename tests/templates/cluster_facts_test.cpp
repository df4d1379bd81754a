#include "templates/cluster/cluster_facts.h"

#include "support/catch.h"
#include "templates/scontrol_recording.h"

using namespace ddl::templates;
using Catch::Matchers::Contains;

namespace {

ClusterFacts answered_facts() {
  ClusterFacts facts;
  facts.partitions = {{"gpu", false, true, std::nullopt, 60, std::nullopt, 2, 256},
                      {"main", true, true, std::nullopt, 60, std::nullopt, 4, 272}};
  facts.nodes = {{"node1", 2, {"main"}, 8, 0, 16000, {}}, {"node3", 2, {"gpu", "main"}, 128, 8, 480000, {}}};
  return facts;
}

std::string json_error(std::string_view text) {
  const auto facts = cluster_facts_from_json(text);
  if (facts) return "";
  CHECK(facts.error().code() == ddl::ErrorCode::kProtocol);
  return facts.error().message();
}

/// scontrol's recorded text with a piece replaced.
std::string with(std::string_view text, const std::string& piece, const std::string& replacement) {
  std::string result(text);
  const std::size_t at = result.find(piece);
  REQUIRE(at != std::string::npos);
  return result.replace(at, piece.size(), replacement);
}

std::string scontrol_error(std::string_view partitions, std::string_view nodes) {
  const auto facts = cluster_facts_from_scontrol(partitions, nodes);
  if (facts) return "";
  CHECK(facts.error().code() == ddl::ErrorCode::kProtocol);
  return facts.error().message();
}

}  // namespace

TEST_CASE("facts become JSON and back unchanged") {
  ClusterFacts facts = answered_facts();
  facts.name = "ddl";
  facts.version = "22.05.8";
  facts.partitions[0].is_up = false;
  facts.partitions[0].max_nodes = 4;
  facts.partitions[0].max_minutes.reset();
  facts.partitions[1].default_minutes = 30;
  facts.nodes[1].features = {"a100", "nvlink"};
  const std::string json = cluster_facts_json(facts);
  CHECK(json.find('\n') == json.size() - 1);
  const auto back = cluster_facts_from_json(json);
  REQUIRE(back);
  CHECK(*back == facts);
  const auto empty = cluster_facts_from_json(cluster_facts_json({}));
  REQUIRE(empty);
  CHECK(*empty == ClusterFacts{});
}

TEST_CASE("a node without a count is one, and unknown keys are ignored") {
  const auto facts = cluster_facts_from_json(
      R"({"cluster": "c", "version": "1", "new": [{}], "partitions": [],
          "nodes": [{"name": "n", "partitions": [], "cpus": 1, "gpus": 0, "memory_mb": 1, "features": []}]})");
  REQUIRE(facts);
  REQUIRE(facts->nodes.size() == 1);
  CHECK(facts->nodes[0].count == 1);
}

TEST_CASE("JSON that is not what the probe prints is an error, with its place") {
  CHECK_THAT(json_error(""), Contains("it is no JSON object"));
  CHECK_THAT(json_error("[1, 2"), Contains("it is no JSON object"));
  CHECK_THAT(json_error("[]"), Contains("it is no JSON object"));
  CHECK_THAT(json_error("{}"), Contains("cluster: it is not a string"));
  CHECK_THAT(json_error(std::string(100'000, '[')), Contains("it is no JSON object"));
  CHECK_THAT(json_error(std::string(kMaxClusterText + 1, ' ')), Contains("longer"));
  const std::string good = cluster_facts_json(answered_facts());
  CHECK_THAT(json_error(with(good, R"("is_up":true)", R"("is_up":1)")), Contains("partitions 0: is_up: "));
  CHECK_THAT(json_error(with(good, R"("cpus":272)", R"("cpus":-1)")), Contains("partitions 1: cpus: "));
  CHECK_THAT(json_error(with(good, R"("cpus":272)", R"("cpus":1.5)")), Contains("partitions 1: cpus: "));
  CHECK_THAT(json_error(with(good, R"("cpus":272)", R"("cpus":18446744073709551615)")), Contains("cpus: "));
  CHECK_THAT(json_error(with(good, R"("cpus":272)", R"("cpus":2147483648)")), Contains("cpus: "));
  CHECK_THAT(json_error(with(good, R"("count":2)", R"("count":1000001)")), Contains("nodes 0: count: "));
  CHECK_THAT(json_error(with(good, R"("gpus":8)", R"("gpus":"8")")), Contains("nodes 1: gpus: "));
  CHECK_THAT(json_error(with(good, R"(["main"])", R"([7])")), Contains("nodes 0: partitions: "));
  CHECK_THAT(json_error(with(good, R"("main")", R"("ma\u001bin")")), Contains("partitions 1: name: "));
  CHECK_THAT(json_error(with(good, R"("main")", '"' + std::string(300, 'x') + '"')), Contains("name: "));
}

TEST_CASE("the output of scontrol becomes facts") {
  const auto facts = cluster_facts_from_scontrol(ddl::test::kScontrolPartitions, ddl::test::kScontrolNodes);
  REQUIRE(facts);
  CHECK(*facts == answered_facts());
}

TEST_CASE("limits, states, features and set-aside CPUs in scontrol's text") {
  std::string partitions = with(ddl::test::kScontrolPartitions, "MaxNodes=UNLIMITED", "MaxNodes=16");
  partitions = with(partitions, "DefaultTime=NONE", "DefaultTime=00:30:00");
  partitions = with(partitions, "MaxTime=01:00:00", "MaxTime=2-00:00:00");
  partitions = with(partitions, "State=UP", "State=DRAIN");
  std::string nodes = with(ddl::test::kScontrolNodes, "AvailableFeatures=(null)", "AvailableFeatures=a,b");
  nodes = with(nodes, "CPUEfctv=8", "CPUEfctv=6");
  nodes = with(nodes, "CPUEfctv=8 ", "");
  nodes = with(nodes, "CapWatts", "Comment=RealMemory=1 CapWatts");
  const auto facts = cluster_facts_from_scontrol(partitions, nodes);
  REQUIRE(facts);
  CHECK(facts->partitions[0] == Partition{"gpu", false, false, 16, 2 * 24 * 60, 30, 2, 256});
  REQUIRE(facts->nodes.size() == 3);
  CHECK(facts->nodes[0] == NodeKind{"node1", 1, {"main"}, 6, 0, 16000, {"a", "b"}});
  CHECK(facts->nodes[1] == NodeKind{"node2", 1, {"main"}, 8, 0, 16000, {}});
}

TEST_CASE("text that is not scontrol's is an error") {
  const std::string partitions(ddl::test::kScontrolPartitions), nodes(ddl::test::kScontrolNodes);
  CHECK_THAT(scontrol_error("", ""), Contains("it names no partition"));
  CHECK_THAT(scontrol_error("No partitions in the system\n", nodes), Contains("it names no partition"));
  CHECK(scontrol_error(partitions, "No nodes in the system\n").empty());
  CHECK_THAT(scontrol_error(with(partitions, "MaxTime=01:00:00", "MaxTime=soon"), nodes),
             Contains("gpu: MaxTime=soon is not understood"));
  CHECK_THAT(scontrol_error(with(partitions, "TotalNodes=2 ", ""), nodes),
             Contains("gpu: there is no TotalNodes"));
  CHECK_THAT(scontrol_error(partitions, with(nodes, "RealMemory=16000", "RealMemory=-16000")),
             Contains("node1: RealMemory=-16000 is not understood"));
  CHECK_THAT(scontrol_error(with(partitions, "=gpu ", "=\x1b[31m "), nodes), Contains("control characters"));
}

TEST_CASE("nodes with the same properties are counted, not listed") {
  std::vector<NodeKind> kinds;
  for (int i = 0; i < 10'000; ++i)
    kinds.push_back({"n" + std::to_string(i), 1, {"p"}, 64 + i % 2, 4, 1000, {}});
  const auto result = merged(kinds);
  REQUIRE(result.size() == 2);
  CHECK(result[0].name == "n0");
  CHECK(result[1].name == "n1");
  CHECK(result[0].count + result[1].count == 10'000);
  CHECK(merged({}).empty());
}
