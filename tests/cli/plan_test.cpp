// The output of --dry-run: golden texts, and parsed JSON.
#include <nlohmann/json.hpp>

#include "cli/reports/plan_report.h"
#include "contract/version.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using nlohmann::json;

namespace {

const Environment kHead{
    {"HOME", "/home/me"}, {"LANG", "C"}, {"PMIX_RANK", "3"}, {"RANK", "3"}, {"SECRET", "s3cret"}};

JobSpec job() {
  JobSpec spec;
  spec.command = {"python", "train.py", "--name", "my run"};
  spec.num_ranks = 3;
  spec.workdir = "/home/me";
  spec.output_directory = "/home/me/logs";
  spec.timeout_seconds = 90;
  return spec;
}

/// Two nodes, three ranks; written by hand, so that these tests do not depend on the launcher's planning.
DryPlan plan() {
  DryPlan result;
  JobLaunch& launched = result.launch.job;
  launched.num_ranks = 3;
  launched.node_names = {"node1", "node2"};
  launched.node_ranks = {{0, 1}, {2}};
  launched.command = job().command;
  launched.workdir = job().workdir;
  launched.environment = {{"HOME", "/home/me"}, {"LANG", "C.UTF-8"}, {"SECRET", "s3cret"}, {"ADDED", "a b"}};
  result.slots = {2, std::nullopt};
  result.assumed_slots = 4;
  result.hosts_from = "-H";
  result.launch.nodes.resize(2);
  result.launch.nodes[1].node_index = 1;
  result.bindings.resize(2);
  const auto add = [&](std::size_t where, int rank, int local_rank) {
    RankLaunch launch;
    launch.rank = rank;
    launch.local_rank = local_rank;
    launch.reads_stdin = rank == 0;
    launch.environment = {{"RANK", std::to_string(rank)},
                          {"WORLD_SIZE", "3"},
                          {"MASTER_PORT", std::string(kUnknownUntilLaunch)}};
    result.launch.nodes[where].ranks.push_back(launch);
  };
  add(0, 0, 0);
  add(0, 1, 1);
  add(1, 2, 0);
  return result;
}

}  // namespace

TEST_CASE("the plan as text") {
  CHECK(
      ddl::cli::plan_text(plan(), job(), kHead) ==
      "ddlrun would start 3 ranks on 2 nodes. Nothing was started and no host was asked.\n"
      "\n"
      "  hosts       -H; the slots of 1 host are unknown until launch; assumed: 4 each, as on this machine\n"
      "  command     python train.py --name 'my run'\n"
      "  workdir     /home/me\n"
      "  stdin       read by rank 0; the others read /dev/null\n"
      "  output      lines tagged with their rank; also in /home/me/logs/rank.R/{stdout,stderr}\n"
      "  timeout     90 s\n"
      "  kill grace  5 s\n"
      "\n"
      "Every rank inherits ddlrun's environment without PMIX_RANK, finds a PMIx server by PMIX_*, and gets\n"
      "    ADDED='a b'\n"
      "    LANG=C.UTF-8\n"
      "    MASTER_PORT (unknown until launch)  (torch)\n"
      "    WORLD_SIZE=3  (torch)\n"
      "\n"
      "Node 0, node1 (2 slots): ranks 0, 1\n"
      "    rank 0: RANK=0 (torch)\n"
      "    rank 1: RANK=1 (torch)\n"
      "\n"
      "Node 1, node2 (slots unknown until launch): rank 2\n"
      "    rank 2: RANK=2 (torch)\n");
}

TEST_CASE("the plan says what may change in an elastic job") {
  JobSpec changing = job();
  ElasticSpec& elastic = changing.elastic;
  const auto line = [&] {
    const std::string text = ddl::cli::plan_text(plan(), changing, kHead), begin = "  elastic     ";
    const std::size_t at = text.find(begin);
    return at == std::string::npos ? ""
                                   : text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
  };
  CHECK(line().empty());
  CHECK(json::parse(ddl::cli::plan_json(plan(), changing, kHead))["elastic"].is_null());
  elastic = {.mode = ElasticMode::kContinue, .min_ranks = 1, .max_ranks = kMaxRanks};
  CHECK(line() == "ranks go on when others fail: 1 rank at least");
  elastic.max_ranks = 3;
  elastic.spares = 2;
  elastic.state_directory = "/state";
  elastic.state_interval = 5;
  CHECK(line() ==
        "ranks go on when others fail: 1 rank at least, 3 at most; 2 in reserve; the state goes to /state "
        "after "
        "every 5 commits");
  CHECK(json::parse(ddl::cli::plan_json(plan(), changing, kHead))["elastic"] ==
        json::parse(R"({"mode": "continue", "min_ranks": 1, "max_ranks": 3, "spares": 2, "max_restarts": 0,
                        "state_directory": "/state"})"));
  elastic = {.mode = ElasticMode::kRestart, .min_ranks = 2, .max_ranks = 2, .max_restarts = 3};
  CHECK(line() ==
        "all ranks start again: at most 3 times after failures of ranks; 2 ranks at least, 2 at most");
  elastic.max_restarts = 0;
  CHECK(line() == "all ranks start again when a host is lost: 2 ranks at least, 2 at most");
}

TEST_CASE("after a node was asked, the plan gives the reason for the position of each rank") {
  DryPlan asked = plan();
  asked.asked_all = true;
  asked.launch.nodes[0].ranks[1].cpus = ddl::CpuSet::range(8, 15);
  asked.bindings[0].plan.ranks.resize(2);
  asked.bindings[0].plan.ranks[0].why = "it is a share";
  asked.bindings[0].plan.ranks[1].why = "GPU 1 is near CPUs 8-15";
  asked.bindings[0].plan.warnings = {"GPUs are numbered by their bus ids"};
  asked.bindings[1].unbound_because = "1 rank for no core";
  const std::string text = ddl::cli::plan_text(asked, job(), kHead);
  CHECK_THAT(text, Catch::Contains("on 2 nodes. Nothing was started; every host was asked what it has.\n"));
  CHECK_THAT(text, Catch::Contains("    warning: GPUs are numbered by their bus ids\n"
                                   "    rank 0: RANK=0 (torch)\n"
                                   "        why: it is a share\n"
                                   "    rank 1: CPUs 8-15; RANK=1 (torch)\n"
                                   "        why: GPU 1 is near CPUs 8-15\n"));
  CHECK_THAT(text, Catch::Contains("    not bound: 1 rank for no core\n    rank 2: RANK=2 (torch)\n"));
  const auto parsed = json::parse(ddl::cli::plan_json(asked, job(), kHead));
  CHECK(parsed["hosts_asked"] == true);
  CHECK(parsed["nodes"][0]["ranks"][1]["why"] == "GPU 1 is near CPUs 8-15");
  CHECK(parsed["nodes"][0]["warnings"] == json::parse(R"(["GPUs are numbered by their bus ids"])"));
}

TEST_CASE("the plan says that what --map-by counts is assumed for hosts that were not asked") {
  DryPlan assumed = plan();
  assumed.slots = {2, 2};
  assumed.unknown_objects = 1;
  CHECK_THAT(ddl::cli::plan_text(assumed, job(), kHead),
             Catch::Contains(
                 "  hosts       -H; what --map-by counts on 1 host is unknown until launch; assumed: as on "
                 "this machine\n"));
}

TEST_CASE("the plan describes other options of input and output") {
  JobSpec spec = job();
  spec.stdin_target = StdinTarget::kAll;
  spec.tag_output = false;
  spec.timestamp_output = true;
  spec.output_directory.clear();
  spec.timeout_seconds = 0;
  const std::string text = ddl::cli::plan_text(plan(), spec, kHead);
  CHECK_THAT(text, Catch::Contains("  stdin       every rank reads all of it\n"
                                   "  output      lines unchanged, with the time\n"
                                   "  kill grace  5 s\n"));
  spec.stdin_target = StdinTarget::kNone;
  CHECK_THAT(ddl::cli::plan_text(plan(), spec, kHead), Catch::Contains("every rank reads /dev/null\n"));
}

TEST_CASE("the plan as JSON") {
  const std::string text = ddl::cli::plan_json(plan(), job(), kHead);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(json::parse(text) == json::parse(R"({
    "ddlrun": ")" + std::string(ddl::contract::kVersion) +
                                         R"(", "kind": "launch_plan", "size": 3,
    "command": ["python", "train.py", "--name", "my run"], "workdir": "/home/me", "stdin": "0",
    "tag_output": true, "timestamp_output": false, "output_directory": "/home/me/logs", "timeout_seconds": 90.0,
    "kill_grace_seconds": 5.0, "elastic": null, "hosts_from": "-H", "hosts_asked": false,
    "environment_set": {"ADDED": "a b", "LANG": "C.UTF-8", "MASTER_PORT": null, "WORLD_SIZE": "3"},
    "environment_origins": {}, "environment_removed": ["PMIX_RANK"],
    "environment_frameworks": {"torch": ["RANK", "WORLD_SIZE", "MASTER_PORT"]},
    "nodes": [
      {"name": "node1", "warnings": [], "slots": 2, "ranks": [
        {"rank": 0, "local_rank": 0, "reads_stdin": true, "cpus": null, "memory_nodes": [],
         "why": null, "environment": {"RANK": "0"}},
        {"rank": 1, "local_rank": 1, "reads_stdin": false, "cpus": null, "memory_nodes": [],
         "why": null, "environment": {"RANK": "1"}}]},
      {"name": "node2", "warnings": [], "slots": null, "ranks": [
        {"rank": 2, "local_rank": 0, "reads_stdin": false, "cpus": null, "memory_nodes": [],
         "why": null, "environment": {"RANK": "2"}}]}]})"));
}

TEST_CASE("the plan says where a default comes from, unless the ranks have another value") {
  const std::vector<DefaultVariable> defaults = {
      {"ADDED", "a b", "site own"}, {"LANG", "C", "site own"}, {"OTHER", "1", "--network-interfaces"}};
  const std::string text = ddl::cli::plan_text(plan(), job(), kHead, defaults);
  CHECK_THAT(text, Catch::Contains("    ADDED='a b'  (site own)\n    LANG=C.UTF-8\n"));
  const auto parsed = json::parse(ddl::cli::plan_json(plan(), job(), kHead, defaults));
  CHECK(parsed["environment_origins"] == json{{"ADDED", "site own"}});
  CHECK(ddl::cli::defaults_sentence(defaults) ==
        "ranks also get ADDED='a b', LANG=C (site own), OTHER=1 (--network-interfaces)");
}

TEST_CASE("variables that ranks inherit unchanged are not shown") {
  CHECK_THAT(ddl::cli::plan_text(plan(), job(), kHead), !Catch::Contains("s3cret"));
  CHECK_THAT(ddl::cli::plan_json(plan(), job(), kHead), !Catch::Contains("s3cret"));
}

TEST_CASE("control characters of the user's words are printed as bash writes them") {
  JobSpec spec = job();
  spec.command = {"echo", "\x1b[31m'a\\b'", "two\nlines", "\xff\u00e9", "it's"};
  const std::string text = ddl::cli::plan_text(plan(), spec, kHead);
  CHECK_THAT(text,
             Catch::Contains(R"(  command     echo $'\x1b[31m\'a\\b\'' $'two\x0alines' $'\xffé' 'it'\''s')"));
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a plan without ranks changes nothing") {
  const auto change = ddl::cli::environment_change(LaunchPlan{}, {{"A", "1"}});
  CHECK(change.set.empty());
  CHECK(change.own.empty());
}
