// What --inspect prints.
#include "cli/reports/inspect_report.h"

#include <cstdlib>
#include <ctime>

#include <nlohmann/json.hpp>

#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::cli;
using namespace ddl::launcher;
using nlohmann::json;

namespace {

/// Times are shown in UTC.
struct InUtc {
  InUtc() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

JobDescription described() {
  return {
      "ddlrun-4711-0f3c9a1b", "train", "python train.py --epochs 10", "login1", 4711, 4, {"node1", "node2"},
      1'714'564'803,          125};
}

/// Rank 3 of four is stopped in user code, and the others wait for it.
JobInspection inspected() {
  JobInspection job;
  job.job = described();
  job.nodes = {{"node1", ""}, {"node2", ""}};
  job.waits = {{"allreduce #812",
                "allreduce #812: 3 of 4 ranks have waited for 61 s for rank 3 (node2, pid 4243), "
                "which is stopped (SIGSTOP)",
                61.2,
                3,
                {3},
                1,
                {},
                0}};
  for (int rank = 0; rank < 4; ++rank) {
    InspectedRank one;
    one.rank = rank;
    one.node = rank / 2;
    one.pid = 4240 + rank;
    one.state = InspectedRank::State::kRunning;
    one.process = {rank == 3 ? "T" : "S", 3, 3723.5, 1'234'567'890};
    one.work.kind = rank == 3 ? CurrentWork::Kind::kUserCode : CurrentWork::Kind::kCall;
    one.work.call = "allreduce";
    one.work.number = rank == 3 ? 811 : 812;
    one.work.seconds = 61.2;
    one.wait = rank == 3 ? -1 : 0;
    one.cpus = std::to_string(8 * rank) + "-" + std::to_string(8 * rank + 7);
    one.gpus = {2 * rank, 2 * rank + 1};
    one.last_event = 0.25;
    one.steps_per_second = 3.5;
    job.ranks.push_back(one);
  }
  job.ranks[1].open_tensors = 3;
  job.ranks[1].oldest_tensor = "layer7.weight";
  job.ranks[1].oldest_tensor_seconds = 61.2;
  return job;
}

/// Of a program without libddl, on a node without binding.
JobInspection without_libddl() {
  JobInspection job;
  job.job = described();
  job.job.num_ranks = 3;
  job.nodes = {{"node1", ""}, {"node2", "its agent has not answered within 0.7 s"}};
  job.ranks.resize(3);
  job.ranks[0].pid = 4240;
  job.ranks[0].state = InspectedRank::State::kRunning;
  job.ranks[0].process = {"R", 1, 0.25, 9'400'000};
  job.ranks[1].rank = 1;
  job.ranks[1].pid = 4241;
  job.ranks[1].state = InspectedRank::State::kEnded;
  job.ranks[2].rank = 2;
  job.ranks[2].node = 1;
  job.ranks[2].pid = 77;
  job.ranks[2].state = InspectedRank::State::kNoAnswer;
  return job;
}

const TerminalStyle kPlain(false);

}  // namespace

TEST_CASE("the table of a job that waits for a stopped rank") {
  const InUtc utc;
  CHECK(inspection_text(inspected(), kPlain) ==
        R"(train (ddlrun 4711 on login1): 4 ranks on 2 nodes, since 2024-05-01 12:00:03 (2 min 5 s)
python train.py --epochs 10

rank  host   pid   state     does                            for        waits for  steps/s  tensors           last event  CPU time   RSS     cores  GPU
0     node1  4240  sleeping  allreduce #812                  1 min 1 s  rank 3     3.50     -                 0.25 s      1 h 2 min  1.2 GB  0-7    0,1
1     node1  4241  sleeping  allreduce #812                  1 min 1 s  rank 3     3.50     3: layer7.weight  0.25 s      1 h 2 min  1.2 GB  8-15   2,3
2     node2  4242  sleeping  allreduce #812                  1 min 1 s  rank 3     3.50     -                 0.25 s      1 h 2 min  1.2 GB  16-23  4,5
3     node2  4243  stopped   user code after allreduce #811  1 min 1 s  -          3.50     -                 0.25 s      1 h 2 min  1.2 GB  24-31  6,7

allreduce #812: 3 of 4 ranks have waited for 61 s for rank 3 (node2, pid 4243), which is stopped (SIGSTOP)
)");
}

TEST_CASE(
    "the table of a program without libddl has only what the kernel knows, and the node that is silent") {
  const InUtc utc;
  CHECK(inspection_text(without_libddl(), kPlain) ==
        R"(train (ddlrun 4711 on login1): 3 ranks on 2 nodes, since 2024-05-01 12:00:03 (2 min 5 s)
python train.py --epochs 10

rank  host   pid   state      CPU time  RSS
0     node1  4240  running    0.250 s   9 MB
1     node1  4241  ended      -         -
2     node2  77    no answer  -         -

node2: its agent has not answered within 0.7 s; what rank 2 does is unknown
)");
}

TEST_CASE("ranks of which nothing is known are named first, and are not missing from the JSON") {
  JobInspection job = inspected();
  job.nodes[1].silence = "its agent has not answered within 0.7 s";
  job.waits[0].sentence = "allreduce #812: 1 of 4 ranks has waited";
  job.waits[0].unknown = {2, 3};
  job.waits[0].num_unknown = 7;
  job.waits[0].missing = {1};
  const std::string text = inspection_text(job, kPlain);
  CHECK_THAT(text, Catch::Matchers::Contains("perhaps ranks 2, 3 and 5 more; rank 1 "));
  CHECK(text.find("node2: its agent has not answered") < text.find("1 of 4 ranks has waited"));
  const json wait = json::parse(inspection_json(job))["waits"][0];
  CHECK(wait["unknown"] == json{2, 3});
  CHECK(wait["num_unknown"] == 7);
  CHECK(wait["missing"] == json{2, 3, 1});
  CHECK(wait["num_missing"] == 8);
  job.waits[0].missing = {};
  job.waits[0].unknown = {2};
  job.waits[0].num_unknown = 1;
  CHECK_THAT(inspection_text(job, kPlain), Catch::Matchers::Contains("perhaps rank 2  "));
}

TEST_CASE("what a job says of itself cannot act on the terminal") {
  JobInspection job = inspected();
  job.job.name = job.job.command = job.nodes[0].name = job.waits[0].sentence = "a\x1b[31m\nb";
  job.ranks[1].oldest_tensor = std::string(31, 'x') + "\xc3\xa9\x1b]0;title\x07 and more";
  job.ranks[0].work.call = "\x1b[2J";
  const std::string text = inspection_text(job, kPlain);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
}

TEST_CASE("of a long command the beginning is shown") {
  JobInspection job = inspected();
  job.job.command = std::string(500, 'x');
  CHECK(inspection_text(job, kPlain).find("\n" + std::string(160, 'x') + "...\n") != std::string::npos);
}

TEST_CASE("states of ranks that need attention are in colour") {
  CHECK(inspection_text(inspected(), TerminalStyle(true)).find("\x1b[1;31mstopped\x1b[0m") !=
        std::string::npos);
}

TEST_CASE("the JSON of a job has what is known, and null for what is not") {
  const json one = json::parse(inspection_json(inspected()));
  CHECK(one["ddlrun"] == ddl::contract::kVersion);
  CHECK(one["kind"] == "inspection");
  CHECK(one["job"]["head_pid"] == 4711);
  CHECK(one["nodes"][1] == json{{"name", "node2"}, {"failure", nullptr}});
  CHECK(one["waits"][0]["missing"] == json{3});
  CHECK(one["waits"][0]["unknown"] == json::array());
  CHECK(one["ranks"][0]["wait"] == 0);
  CHECK(one["ranks"][3]["wait"] == nullptr);
  CHECK(one["ranks"][3]["state"] == "stopped");
  CHECK(one["ranks"][3]["work"]["kind"] == "user_code");
  CHECK(one["ranks"][3]["work"]["text"] == "user code after allreduce #811");
  CHECK(one["ranks"][2]["gpus"] == json{4, 5});
  CHECK(one["ranks"][1]["oldest_tensor"] == "layer7.weight");
  const json other = json::parse(inspection_json(without_libddl()));
  CHECK(other["nodes"][1]["failure"] == "its agent has not answered within 0.7 s");
  CHECK(other["ranks"][0]["work"]["kind"] == "none");
  CHECK(other["ranks"][0]["state"] == "running");
  CHECK(other["ranks"][1]["state"] == "ended");
  CHECK(other["ranks"][2]["state"] == "no_answer");
  for (const char* name : {"cpu_seconds", "resident_bytes", "threads", "cpus", "steps_per_second",
                           "last_event_seconds", "oldest_tensor", "wait"})
    CHECK(other["ranks"][2][name] == nullptr);
  CHECK(other["ranks"][2]["work"]["seconds"] == nullptr);
}

TEST_CASE("the list of jobs has those that do not answer, too") {
  const InUtc utc;
  JobDescription large = described();
  large.hosts = {"n1", "n2", "n3", "n4", "n5", "n6"};
  const std::vector<FoundJob> jobs = {
      {4711, "ddlrun-4711-0f3c9a1b", described()},
      {50, "ddlrun-50-ab", ddl::fail(ddl::ErrorCode::kTimeout, "it has not answered in time")},
      {4712, "ddlrun-4712-ab", large}};
  CHECK(jobs_text(jobs) ==
        R"(pid   name   ranks  hosts           since                            command
4711  train  4      node1,node2     2024-05-01 12:00:03 (2 min 5 s)  python train.py --epochs 10
50    it has not answered in time
4712  train  4      n1,n2,n3,n4,+2  2024-05-01 12:00:03 (2 min 5 s)  python train.py --epochs 10
)");
  const json list = json::parse(jobs_json(jobs));
  CHECK(list["kind"] == "jobs");
  CHECK(list["jobs"][0]["name"] == "train");
  CHECK(list["jobs"][0]["failure"] == nullptr);
  CHECK(list["jobs"][1] ==
        json{{"id", "ddlrun-50-ab"}, {"head_pid", 50}, {"failure", "it has not answered in time"}});
}

TEST_CASE("a page fits the terminal") {
  CHECK(fitted("abc\nde\nfgh\n", 2, 2) == "ab\nde");
  CHECK(fitted("abc\n", 5, 5) == "abc\n");
  CHECK(fitted("\xc3\xa4\xc3\xb6\xc3\xbc\n", 2, 5) == "\xc3\xa4\xc3\xb6\n");
  // What switches the colour off is kept.
  CHECK(fitted("a\x1b[1;31mbcd\x1b[0m\n", 2, 5) == "a\x1b[1;31mb\x1b[0m\n");
  CHECK(fitted("a\x1b[", 2, 5) == "a\x1b[");
  CHECK(fitted("", 2, 5).empty());
  CHECK(fitted("abc", 2, 0).empty());
}
