// Options of binding: those of a job, those of --show-bind, and invalid ones.
#include "base/text.h"
#include "cli/commands/commands.h"
#include "support/catch.h"

using namespace ddl::cli;
using namespace ddl::affinity;
using Words = std::vector<std::string>;

namespace {

constexpr const char* kLscpu = "NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\n";

ddl::Result<std::string> read_binding_file(const std::string& path) {
  if (path == "lscpu.txt") return std::string(kLscpu);
  if (path == "rocm.txt")
    return std::string("GPU[0] : (Topology) Numa Node: 1\nGPU[1] : (Topology) Numa Node: 0\n");
  if (path == "./small.yaml") return std::string("name: small\n");
  return ddl::fail(ddl::ErrorCode::kNotFound, path + ": there is no such file");
}

auto parse_binding(const Words& words) {
  return parse_command_line(words, {"/home/me", 6, "head", read_binding_file});
}

Request accepted_binding(const Words& words) {
  const auto request = parse_binding(words);
  INFO(ddl::join(words, " ") << " -> " << (request ? "" : request.error().message()));
  REQUIRE(request);
  return *request;
}

std::string refusal(const Words& words) {
  const auto request = parse_binding(words);
  return request ? "accepted" : request.error().message();
}

}  // namespace

TEST_CASE("every option of binding reaches the job") {
  const Request request =
      accepted_binding({"-np", "4", "--bind-to", "gpu", "--cores-per-rank", "6", "--reserve", "0,8-9",
                        "--rank-order", "cpu", "--smt", "--ranks-per-gpu", "2", "--mem-bind", "none",
                        "--report-bindings", "--strict-bind", "--oversubscribe", "./a"});
  const BindingPolicy& policy = request.job.binding;
  CHECK(policy.bind_to == BindTo::kGpu);
  CHECK(policy.cores_per_rank == 6);
  CHECK(policy.reserved.cpus.list() == "0,8-9");
  CHECK_FALSE(policy.reserved.first_core_per_l3);
  CHECK(policy.rank_order == RankOrder::kCpu);
  CHECK(policy.smt);
  CHECK(policy.ranks_per_gpu == 2);
  CHECK(policy.memory == MemoryBinding::kNone);
  CHECK(policy.oversubscribe);
  CHECK(request.job.report_bindings);
  CHECK(request.job.strict_bind);
  CHECK(accepted_binding({"-np", "1", "--reserve", "first-core-per-l3", "./a"})
            .job.binding.reserved.first_core_per_l3);
  CHECK(accepted_binding({"-np", "1", "--gpus-per-rank", "2", "./a"}).job.binding.gpus_per_rank == 2);
  CHECK(accepted_binding({"-np", "1", "./a"}).job.binding == BindingPolicy{});
}

TEST_CASE("the options of --show-bind and --show-topology reach the request") {
  const Request plain = accepted_binding({"--show-bind", "-np", "8"});
  CHECK(plain.action == Action::kShowBind);
  CHECK(plain.binding_view.local_ranks == 8);
  CHECK(plain.binding_view.format == BindingFormat::kTable);
  CHECK_FALSE(plain.binding_view.topology_format);
  CHECK(accepted_binding({"--show-bind", "-np", "64", "--ranks-per-node", "8"}).binding_view.local_ranks ==
        8);
  CHECK(accepted_binding({"--show-bind", "--ranks-per-node", "8", "--json"}).binding_view.format ==
        BindingFormat::kJson);
  CHECK(accepted_binding({"--explain-bind", "-np", "2"}).binding_view.format == BindingFormat::kExplanation);
  CHECK(accepted_binding({"--show-bind", "-np", "2", "--format", "mask_cpu"}).binding_view.format ==
        BindingFormat::kMaskCpu);
  const Request node = accepted_binding({"--show-topology", "--topology", "node.xml", "--format", "svg"});
  CHECK(node.binding_view.topology_format == TopologyFormat::kSvg);
  CHECK(node.binding_view.topology == "node.xml");
  CHECK(node.binding_view.local_ranks == 0);
  CHECK(accepted_binding({"--show-topology"}).binding_view.topology_format == TopologyFormat::kText);
}

TEST_CASE("invalid and contradictory options of binding are refused") {
  using Catch::Contains;
  CHECK_THAT(refusal({"--show-bind"}), Contains("-np is missing"));
  CHECK_THAT(refusal({"--show-bind", "-np", "2", "-H", "a:2"}), Contains("is for one node"));
  CHECK_THAT(refusal({"--show-bind", "-np", "2", "--format", "yaml"}),
             Contains("'yaml' is not one of table"));
  CHECK_THAT(refusal({"--show-topology", "--format", "table"}), Contains("'table' is not text"));
  CHECK_THAT(refusal({"--show-topology", "--show-bind", "-np", "2"}), Contains("contradict each other"));
  CHECK_THAT(refusal({"--explain-bind", "-np", "2", "--format", "json"}), Contains("contradict each other"));
  CHECK_THAT(refusal({"--show-bind", "-np", "2", "--topology", "a", "--topology-text", "b"}),
             Contains("contradict"));
  CHECK_THAT(refusal({"--show-bind", "-np", "2", "--site", "a", "--topology", "b"}), Contains("contradict"));
  CHECK_THAT(refusal({"--show-bind", "-np", "2", "--site", "a", "--topology-text", "b"}),
             Contains("contradict"));
  CHECK_THAT(refusal({"-np", "2", "--site", "", "./a"}), Contains("--site"));
  CHECK_THAT(refusal({"--explain-bind", "--dry-run", "-np", "2"}), Contains("--dry-run is for a job"));
  CHECK_THAT(refusal({"-np", "2", "--probe", "./a"}), Contains("--probe belongs to --dry-run"));
  CHECK_THAT(refusal({"-np", "2", "--topology", "a", "./a"}), Contains("--topology belongs to --show-bind"));
  CHECK_THAT(refusal({"-np", "2", "--format", "json", "./a"}), Contains("--format belongs to --show-bind"));
  CHECK_THAT(refusal({"-np", "2", "--bind-to", "l4", "./a"}), Contains("'l4' is not one of auto"));
  CHECK_THAT(refusal({"-np", "2", "--reserve", "x", "./a"}), Contains("'x' is neither first-core-per-l3"));
  CHECK_THAT(refusal({"-np", "2", "--reserve", "", "./a"}), Contains("'' is neither"));
  CHECK_THAT(refusal({"-np", "2", "--rank-order", "x", "./a"}), Contains("'x' is neither gpu nor cpu"));
  CHECK_THAT(refusal({"-np", "2", "--mem-bind", "x", "./a"}), Contains("'x' is neither local nor none"));
  CHECK_THAT(refusal({"-np", "2", "--cores-per-rank", "0", "./a"}), Contains("--cores-per-rank"));
  CHECK_THAT(refusal({"-np", "2", "--gpus-per-rank", "2", "--ranks-per-gpu", "2", "./a"}),
             Contains("contradict"));
}

TEST_CASE("recorded text of several files describes one node") {
  Request request;
  BindingView& view = request.binding_view;
  view.local_ranks = 2;
  view.text_files = {"rocm.txt", "lscpu.txt"};
  view.format = BindingFormat::kMapCpu;
  CHECK(binding_report(request, read_binding_file).value() == "map_cpu:4,0\n");
  view.text_files = {"none.txt"};
  CHECK_THAT(binding_report(request, read_binding_file).error().message(),
             Catch::Contains("none.txt: there is no such file"));
  view.text_files = {"lscpu.txt"};
  view.topology_format = TopologyFormat::kText;
  view.local_ranks = 0;
  CHECK_THAT(binding_report(request, read_binding_file).value(), Catch::Contains("2 NUMA nodes"));
}

TEST_CASE("--site gives the node and the rank order of the profile; --rank-order overrides the order") {
  Request request =
      accepted_binding({"--show-bind", "-np", "8", "--site", "frontier", "--format", "map_cpu"});
  const auto report = [&] {
    const auto found = find_site(request, {{}, read_binding_file}, {});
    const auto text = found.and_then([&] { return binding_report(request, read_binding_file); });
    return text ? *text : "error: " + text.error().message();
  };
  CHECK(report() == "map_cpu:1,9,17,25,33,41,49,57\n");
  request = accepted_binding(
      {"--show-bind", "-np", "8", "--site", "frontier", "--rank-order", "gpu", "--format", "map_cpu"});
  CHECK(report() == "map_cpu:49,57,17,25,1,9,33,41\n");
  request = accepted_binding({"--show-bind", "-np", "8", "--site", "nowhere"});
  CHECK_THAT(report(), Catch::Contains("no profile of a site 'nowhere'"));
  request = accepted_binding({"--show-bind", "-np", "2", "--site", "./small.yaml"});
  CHECK_THAT(report(), Catch::Contains("has no model of its nodes"));
}
