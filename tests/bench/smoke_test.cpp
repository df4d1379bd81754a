// Real short runs of ddl-bench, as a user starts it.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "base/process_tree.h"
#include "bench/measured_run.h"
#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"

namespace ddl::bench {
namespace {

// The script tests/cluster/cluster prints this before the reason.
constexpr const char* kNoCluster = "SKIPPED: cluster: ";

/// "64" of the rows "64-near" and "64-far".
std::string name_without_distance(const nlohmann::json& one) {
  std::string name = one["name"];
  if (!one["distance"].is_null()) name.resize(name.rfind('-'));
  return name;
}

void check_quick_run(const std::string& benchmark, const std::vector<std::string>& options = {}) {
  REQUIRE(become_subreaper());
  const test::TemporaryDirectory folder;
  const std::string json_path = folder / "report.json";
  const std::string svg_path = folder / "report.svg";
  std::vector<std::string> words{DDL_BENCH_PROGRAM, benchmark, "--quick", "--json",
                                 json_path,         "--svg",   svg_path};
  words.insert(words.end(), options.begin(), options.end());
  auto child = MeasuredRun::start({.argv = words});
  REQUIRE(child);
  const auto cost = child->finish(Deadline::after_seconds(200));
  INFO(child->output());
  // If no cluster can be started, the output holds kNoCluster and the program fails. If a cluster is required,
  // kNoCluster is missing.
  const std::size_t skip = child->output().find(kNoCluster);
  if (!cost && skip != std::string::npos) {
    const std::string reason = child->output().substr(skip + std::string(kNoCluster).size());
    DDL_SKIP(reason.substr(0, reason.find('\n')));
  }
  if (!cost) FAIL(cost.error().message());
  // A chart for each distance of the ranks.
  int charts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".svg") continue;
    CHECK(entry.file_size() > 1000);
    ++charts;
  }
  CHECK(charts > 0);

  std::ifstream file(json_path);
  const auto json = nlohmann::json::parse(file);
  CHECK(json["benchmark"] == benchmark);
  CHECK(json["settings"]["blocks"] == 1);
  CHECK(!json["entrants"].empty());
  for (const auto& contender : json["entrants"]) {
    const std::string name = contender["name"];
    INFO(name);
    const bool is_absent = !contender["absent"].is_null();
    CHECK(contender["failed"].is_null());
    if (is_absent)
      CHECK(name.find("ddl") == std::string::npos);  // a peer may not be installed; ours is always there
    // The ranks may have been near, far, or both, and one block in each state is not enough for all rows.
    std::map<std::string, int> rows;
    for (const auto& one : json["cases"]) {
      const auto& members = one["entrants"];
      if (std::find(members.begin(), members.end(), name) == members.end()) continue;
      int& measured = rows[name_without_distance(one)];
      for (const auto& figures : one["figures"]) {
        if (figures["entrant"] != name) continue;
        ++measured;
        CHECK(figures["samples"].get<int>() >= 1);
        CHECK(figures["p50_seconds"].get<double>() > 0);
        CHECK(figures["p99_seconds"].get<double>() >= figures["p50_seconds"].get<double>());
        CHECK(figures["cpu_seconds_per_run"].get<double>() > 0);
      }
    }
    CHECK(!rows.empty());
    for (const auto& [row, measured] : rows) {
      INFO(row);
      CHECK((measured == 0) == is_absent);
    }
  }
  for (const auto& one : json["cases"]) {
    if (!one["aa_spread"].is_null()) CHECK(one["aa_spread"].get<double>() >= 1);
  }
  for (const auto& gauge : json["gauges"]) {
    const std::string name = gauge["name"];
    INFO(gauge.dump());
    if (name.starts_with("ddl")) CHECK(gauge["value"].is_number());
  }
}

TEST_CASE("a quick run of launch runs every contender", "[launch]") { check_quick_run("launch"); }
TEST_CASE("a quick run of each collective runs every contender", "[collectives]") {
  check_quick_run("allreduce");
  for (const char* benchmark : {"allgather", "alltoall", "broadcast", "reduce-scatter"}) {
    INFO(benchmark);
    check_quick_run(benchmark, {"--np", "4", "--sizes", "4,64K"});
  }
}
TEST_CASE("a quick run of a model's gradients runs every contender", "[gradients]") {
  check_quick_run("gradients", {"--model", "resnet50"});
  check_quick_run("overlap", {"--model", "resnet50"});
}
TEST_CASE("a quick run over hosts with a rate runs every contender", "[network]") {
  check_quick_run("allreduce", {"--hosts", "2", "--rate", "10gbit", "--sizes", "4,64K"});
}
TEST_CASE("a quick run of hosts runs every contender", "[hosts]") { check_quick_run("hosts"); }
TEST_CASE("a quick run of slurm runs every contender", "[slurm]") { check_quick_run("slurm"); }
TEST_CASE("a quick run of large-job runs every contender", "[large-job]") { check_quick_run("large-job"); }

TEST_CASE("MPIs in other folders take part, too", "[mpis]") {
  REQUIRE(become_subreaper());
  std::string names;
  for (const std::string name : {"openmpi-5.0", "mpich-5.0", "impi-2021"}) {
    auto asked = MeasuredRun::start({.argv = {DDL_BENCH_FRAMEWORKS_SCRIPT, "--where", name}});
    REQUIRE(asked);
    if (asked->finish(Deadline::after_seconds(60))) names += (names.empty() ? "" : ",") + name;
  }
  if (names.empty()) DDL_SKIP("no environment of scripts/frameworks with an MPI is here");
  check_quick_run("allreduce", {"--sizes", "4,64K", "--mpi", names});
  check_quick_run("launch", {"--mpi", names});
}

TEST_CASE("each wrong command line exits with 2", "[usage]") {
  REQUIRE(become_subreaper());
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{}, Words{"fast"}, Words{"allreduce", "--np", "0"}, Words{"allreduce", "--sizes", "3"},
        Words{"allreduce", "--entrants", "nobody"}, Words{"allreduce", "--mpi", "=/usr"},
        Words{"allreduce", "--mpi", "mine=/nowhere"}, Words{"slurm", "--mpi", "mpich-5.0"},
        Words{"launch", "--fast"}, Words{"model"},
        Words{"allreduce", "--hosts", "2", "--json", "/tmp/report.json"}}) {
    Command command{.argv = {DDL_BENCH_PROGRAM}};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    auto child = MeasuredRun::start(command);
    REQUIRE(child);
    const auto cost = child->finish(Deadline::after_seconds(60));
    INFO(child->output());
    REQUIRE_FALSE(cost);
    CHECK_THAT(cost.error().message(), Catch::Contains("exited with 2"));
  }
}

}  // namespace
}  // namespace ddl::bench
