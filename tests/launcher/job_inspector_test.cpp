// How the head answers those who ask what the ranks of its job do.
#include "launcher/head/job_inspector.h"

#include <unistd.h>

#include <limits>

#include "contract/version.h"
#include "launcher/head/metrics_exporter.h"
#include "launcher/loop_driver.h"
#include "launcher/protocol/codec.h"
#include "support/catch.h"

using namespace ddl;
using namespace ddl::launcher;
using Catch::Matchers::Contains;

namespace {

/// Ranks 0 and 1 on node1, 2 on node2.
JobInspection job_of_three() {
  JobInspection job;
  job.job.id = "ddlrun-4711-ab";
  job.job.num_ranks = 3;
  job.nodes = {{"node1", ""}, {"node2", ""}};
  job.ranks.resize(3);
  for (int rank = 0; rank < 3; ++rank) {
    job.ranks[static_cast<std::size_t>(rank)].rank = rank;
    job.ranks[static_cast<std::size_t>(rank)].node = rank / 2;
    job.ranks[static_cast<std::size_t>(rank)].cpus = std::to_string(rank);
  }
  return job;
}

std::vector<RankOutcome> three_running() {
  std::vector<RankOutcome> outcomes(3);
  for (int rank = 0; rank < 3; ++rank) {
    outcomes[static_cast<std::size_t>(rank)].rank = rank;
    outcomes[static_cast<std::size_t>(rank)].kind = RankOutcome::Kind::kRunning;
    outcomes[static_cast<std::size_t>(rank)].pid = 100 + rank;
  }
  return outcomes;
}

/// In allreduce number call, or between it and the next one.
RankActivity rank_in(int rank, std::int64_t call, bool is_inside) {
  RankActivity one;
  one.rank = rank;
  one.pid = 200 + rank;
  one.phase = RankActivity::Phase::kJoined;
  one.process = {"S", 3, 1.5, 1'000'000};
  SetActivity world;
  world.generation = 1;
  world.call = {"allreduce", call, is_inside, 0.2};
  one.sets = {world};
  return one;
}

/// An inspector whose clients have asked through the agent of node 1, and all that it has sent.
struct InspectorRig {
  EventLoop loop;
  ddl::launcher::test::LoopDriver driver{loop};
  std::vector<message::AskActivity> asked;
  std::vector<std::pair<int, message::ForwardedAnswer>> answers;
  std::vector<RankOutcome> outcomes = three_running();
  std::vector<message::ChangeTimeline> changes;
  Result<std::string> timeline{"/home/me/t.json"};
  JobInspector inspector{loop,
                         job_of_three(),
                         {[this](const message::AskActivity& ask) {
                            asked.push_back(ask);
                            driver.check();
                          },
                          [this](int node, const message::ForwardedAnswer& answer) {
                            answers.emplace_back(node, answer);
                            driver.check();
                          },
                          [this] { return outcomes; },
                          [](JobDescription& job) {
                            job.start = {{"launched", 0.5}};
                            job.failures = {{name_of(EndReason::kHostLost), 2}};
                          },
                          [this](const message::ChangeTimeline& change) {
                            changes.push_back(change);
                            return timeline;
                          }}};

  void request(std::int64_t client, const message::ClientToJob& request) {
    net::Frame frame = message::encode(request);
    inspector.on_request(1, {client, frame.type, std::move(frame.payload)});
  }
  std::vector<message::JobToClient> answers_to(std::int64_t client) const {
    std::vector<message::JobToClient> all;
    for (const auto& [node, answer] : answers) {
      CHECK(node == 1);
      if (answer.client != client) continue;
      const auto decoded = message::decode<message::JobToClient>({answer.type, answer.payload});
      REQUIRE(decoded);
      all.push_back(*decoded);
    }
    return all;
  }
};

}  // namespace

TEST_CASE("what the agents say is put together, with who waits for whom") {
  std::vector<RankOutcome> outcomes = three_running();
  outcomes[1].kind = RankOutcome::Kind::kExited;
  RankActivity waiting = rank_in(0, 812, true);
  waiting.tensors = {{1, "layer7", 5, 0.05}};  // too short for a wait
  waiting.open_tensors = 3;
  const JobInspection job =
      inspection(job_of_three(), {rank_in(2, 811, false), waiting, RankActivity{1}}, outcomes, {"", ""});
  REQUIRE(job.ranks.size() == 3);
  const InspectedRank& first = job.ranks[0];
  CHECK(first.state == InspectedRank::State::kRunning);
  CHECK(first.pid == 200);
  CHECK(first.process == ProcessActivity{"S", 3, 1.5, 1'000'000});
  CHECK(work_text(first.work) == "allreduce #812");
  CHECK(first.open_tensors == 3);
  CHECK(first.oldest_tensor == "layer7");
  CHECK(first.cpus == "0");
  REQUIRE(job.waits.size() == 1);
  CHECK(first.wait == 0);
  CHECK(job.waits[0].what == "allreduce #812");
  CHECK(job.waits[0].missing == std::vector<int>{2});
  CHECK_THAT(job.waits[0].sentence, Contains("for rank 2 (node2, pid 202), which has been in user code"));
  CHECK(job.ranks[1].state == InspectedRank::State::kEnded);
  CHECK(job.ranks[1].pid == 101);
  CHECK(job.ranks[2].wait == -1);
  CHECK(work_text(job.ranks[2].work) == "user code after allreduce #811");
}

TEST_CASE("of a node that has not answered only what was planned is shown, and why") {
  std::vector<RankOutcome> outcomes = three_running();
  outcomes[0].kind = RankOutcome::Kind::kNotStarted;
  outcomes[0].pid = 0;
  const JobInspection job =
      inspection(job_of_three(), {rank_in(2, 1, true)}, outcomes, {"its agent is lost", ""});
  CHECK(job.nodes[0] == InspectedNode{"node1", "its agent is lost"});
  CHECK(job.nodes[1].silence.empty());
  CHECK(job.ranks[0].state == InspectedRank::State::kNotStarted);
  CHECK(job.ranks[1].state == InspectedRank::State::kNoAnswer);
  CHECK(job.ranks[1].pid == 101);
  CHECK(job.ranks[2].state == InspectedRank::State::kRunning);
  REQUIRE(job.waits.size() == 1);
  CHECK(job.ranks[2].wait == 0);
  CHECK(job.waits[0].missing.empty());
  CHECK(job.waits[0].unknown == std::vector<int>{0, 1});
  CHECK(job.waits[0].num_unknown == 2);
}

TEST_CASE("the offset of a host's clock is known as well as its answer was fast") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  // Both ways took 2 s, and the answer 10 s; the clock is 100 s ahead.
  const ClockOffset ahead = clock_offset(50 * kSecond, {152 * kSecond, 162 * kSecond}, 64 * kSecond);
  CHECK(ahead.seconds == Approx(100));
  CHECK(ahead.bound == Approx(2));
  // One way took 4 s, the other no time.
  const ClockOffset slow = clock_offset(50 * kSecond, {54 * kSecond, 54 * kSecond}, 54 * kSecond);
  CHECK(slow.seconds == Approx(2));
  CHECK(slow.bound == Approx(2));
  CHECK(clock_offset(50 * kSecond, {20 * kSecond, 20 * kSecond}, 50 * kSecond).seconds == Approx(-30));
  CHECK(clock_offset(1'800'000'000 * kSecond, {kSecond, kSecond}, 1'800'000'000 * kSecond).seconds ==
        -kMaxSeconds);
  for (const AnswerTimes& nonsense :
       {AnswerTimes{}, {std::numeric_limits<std::int64_t>::min(), 0}, {20, 10}, {60, 90 * kSecond}})
    CHECK(clock_offset(50 * kSecond, nonsense, 51 * kSecond).bound < 0);
}

TEST_CASE("the lists of a wait are cut") {
  constexpr int kRanks = 2000;
  JobInspection plan;
  plan.nodes = {{"node1", ""}};
  plan.ranks.resize(kRanks);
  std::vector<RankActivity> activities;
  std::vector<RankOutcome> outcomes(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    plan.ranks[static_cast<std::size_t>(rank)].rank = rank;
    outcomes[static_cast<std::size_t>(rank)].kind = RankOutcome::Kind::kRunning;
    activities.push_back(rank_in(rank, rank % 2 + 1, rank % 2 == 1));
  }
  constexpr int kSilent = 1000;
  plan.ranks.resize(kRanks + kSilent);
  for (int rank = kRanks; rank < kRanks + kSilent; ++rank)
    plan.ranks[static_cast<std::size_t>(rank)].rank = rank;
  outcomes.resize(plan.ranks.size());
  const JobInspection job = inspection(plan, activities, outcomes, {""});
  REQUIRE(job.waits.size() == 1);
  CHECK(job.waits[0].num_waiting == kRanks / 2);
  CHECK(job.waits[0].num_missing == kRanks / 2);
  CHECK(job.waits[0].missing.size() == InspectedWait::kMaxMissing);
  CHECK(job.waits[0].num_unknown == kSilent);
  CHECK(job.waits[0].unknown.size() == InspectedWait::kMaxMissing);
  CHECK(job.ranks[1999].wait == 0);
}

TEST_CASE("all agents are asked once for all clients that wait, and late answers are ignored") {
  InspectorRig rig;
  rig.request(1, message::InspectJob{contract::kVersion});
  rig.request(2, message::InspectJob{contract::kVersion});
  REQUIRE(rig.asked.size() == 1);
  CHECK(rig.asked[0].id == 1);
  CHECK(rig.asked[0].pause_seconds > 0);
  rig.inspector.on_activity(0, {7, {}});  // of another question
  rig.inspector.on_activity(
      0, {1, {rank_in(0, 1, true), rank_in(2, 1, true), rank_in(-1, 1, true), rank_in(3, 1, true)}});
  CHECK(rig.answers.empty());
  rig.inspector.on_activity(1, {1, {rank_in(2, 1, false)}});
  for (const int client : {1, 2}) {
    const auto answers = rig.answers_to(client);
    REQUIRE(answers.size() == 3);
    CHECK(std::get<message::JobOverview>(answers[0]).nodes == job_of_three().nodes);
    const auto& ranks = std::get<message::InspectedRanks>(answers[1]).ranks;
    REQUIRE(ranks.size() == 3);
    CHECK(work_text(ranks[2].work) == "user code after allreduce #1");  // node1 has no say in it
    CHECK(std::holds_alternative<message::InspectionEnd>(answers[2]));
  }
  rig.inspector.on_activity(1, {1, {}});
  rig.request(3, message::InspectJob{contract::kVersion});
  CHECK(rig.asked.size() == 2);
  CHECK(rig.asked[1].id == 2);
  CHECK(rig.answers.size() == 6);
}

TEST_CASE("those who want numbers are asked for apart from those who want to see waits") {
  InspectorRig rig;
  rig.request(1, message::InspectJob{contract::kVersion});
  rig.request(2, message::InspectJob{contract::kVersion, true});
  std::vector<JobInspection> measured;
  rig.inspector.ask([&](const JobInspection& job) {
    measured.push_back(job);
    if (measured.size() == 1) rig.inspector.ask([&](const JobInspection& next) { measured.push_back(next); });
  });
  REQUIRE(rig.asked.size() == 1);
  CHECK_FALSE(rig.asked[0].counts);
  rig.inspector.on_activity(0, {1, {}});
  rig.inspector.on_activity(1, {1, {}});
  CHECK(rig.answers_to(1).size() == 3);
  CHECK(rig.answers_to(2).empty());
  REQUIRE(rig.asked.size() == 2);
  CHECK(rig.asked[1].counts);
  CHECK(rig.asked[1].pause_seconds == 0);

  RankActivity busy = rank_in(0, 1, false);
  busy.calls.steps = 7;
  NodeUsage usage;
  usage.cpus = 8;
  rig.inspector.on_activity(0, {2, {busy}, usage});
  rig.inspector.on_activity(1, {2, {}});
  REQUIRE(rig.answers_to(2).size() == 3);
  REQUIRE(measured.size() == 1);
  CHECK(std::get<message::JobOverview>(rig.answers_to(2).at(0)).nodes.at(0).usage == usage);
  CHECK(measured[0].nodes.at(0).usage == usage);
  CHECK(measured[0].ranks.at(0).calls.steps == 7);
  CHECK(std::get<message::InspectedRanks>(rig.answers_to(2).at(1)).ranks.at(0).calls.steps == 7);

  CHECK(measured[0].job.start == std::vector<StartPhase>{{"launched", 0.5}});
  CHECK(measured[0].job.head_resident_bytes > 0);
  CHECK(measured[0].job.failures.at("host_lost") == 2);

  // A function that asks again when it is told gets the next answer.
  REQUIRE(rig.asked.size() == 3);
  rig.inspector.on_activity(0, {3, {}});
  rig.inspector.on_activity(1, {3, {}});
  CHECK(measured.size() == 2);
  rig.inspector.set_plan(job_of_three());
  CHECK(rig.asked.size() == 3);
}

TEST_CASE("a job is measured once it runs, and then again after each interval, until it is closed") {
  InspectorRig rig;
  int told = 0;
  MetricsExport wanted;
  wanted.on_sample = [&](const JobInspection&) { ++told; };
  wanted.interval_seconds = 0.01;
  std::vector<MetricsExport::OnSample> asked;
  MetricsExporter exporter(rig.loop, wanted, [&](MetricsExport::OnSample on_sample) {
    asked.push_back(std::move(on_sample));
    rig.driver.check();
  });
  REQUIRE(exporter.open("ddlrun-1-2"));
  CHECK(asked.empty());
  exporter.begin();
  rig.driver.run_until("three questions", [&] { return asked.size() >= 3; });
  exporter.end(job_of_three);
  CHECK(told == 1);
  const std::size_t before = asked.size();
  bool has_passed = false;
  const auto later = rig.loop.after(std::chrono::milliseconds(50), [&] {
    has_passed = true;
    rig.driver.check();
  });
  rig.driver.run_until("five intervals", [&] { return has_passed; });
  CHECK(asked.size() == before);
  asked[0](job_of_three());
  CHECK(told == 2);
}

TEST_CASE("an agent that does not answer is named after a moment, and one that is lost at once") {
  InspectorRig rig;
  rig.request(1, message::InspectJob{contract::kVersion});
  rig.inspector.on_activity(0, {1, {rank_in(0, 1, true)}});
  rig.driver.run_until("the answer without node2", [&] { return rig.answers.size() == 3; });
  CHECK_THAT(std::get<message::JobOverview>(rig.answers_to(1).at(0)).nodes.at(1).silence,
             Contains("has not answered within 0.7 s"));
  rig.request(2, message::InspectJob{contract::kVersion});
  rig.inspector.on_activity(0, {2, {rank_in(0, 1, true)}});
  rig.inspector.on_lost(1, "the link was closed");
  rig.inspector.on_lost(1, "and something that follows from it");
  REQUIRE(rig.answers_to(2).size() == 3);
  CHECK(std::get<message::JobOverview>(rig.answers_to(2).at(0)).nodes.at(1).silence == "the link was closed");
  rig.request(3, message::InspectJob{contract::kVersion});
  rig.inspector.on_activity(0, {3, {}});
  CHECK(rig.answers_to(3).size() == 3);
}

TEST_CASE("a job is described at once, and a client of another version is refused") {
  InspectorRig rig;
  rig.request(1, message::DescribeJob{contract::kVersion});
  CHECK(std::get<message::JobDescribed>(rig.answers_to(1).at(0)).job.id == "ddlrun-4711-ab");
  rig.request(2, message::DescribeJob{"9.9"});
  rig.request(3, message::InspectJob{""});
  for (const int client : {2, 3}) {
    CHECK_THAT(std::get<message::Refused>(rig.answers_to(client).at(0)).why,
               Contains(std::string("the job runs under ddlrun ") + contract::kVersion));
  }
  rig.inspector.on_request(1, {4, 9999, "no request"});
  CHECK_THAT(std::get<message::Refused>(rig.answers_to(4).at(0)).why,
             Contains("a message of unknown type 9999"));
  CHECK(rig.asked.empty());
}

TEST_CASE("the plan of a job has its name, command, nodes, CPUs and GPUs") {
  JobSpec spec;
  spec.name = "train";
  spec.command = {"./train", "a b"};
  LaunchPlan plan;
  plan.nodes.resize(2);
  plan.job.job_id = "ddlrun-1-ab";
  plan.job.num_ranks = 2;
  plan.job.node_names = {"node1", "node2"};
  plan.nodes[0].ranks = {{1, 0, false, {}, *CpuSet::parse_list("0-3"), {}}};
  plan.nodes[1].ranks = {{0, 0, false, {}, {}, {}}};
  std::vector<NodeBinding> bindings(2);
  bindings[0].plan.ranks.resize(1);
  bindings[0].plan.ranks[0].gpus.resize(1);
  bindings[0].plan.ranks[0].gpus[0].index = 5;
  const JobInspection job = planned_job(spec, plan, bindings);
  CHECK(job.job.name == "train");
  CHECK(job.job.command == "./train 'a b'");
  CHECK(job.job.head_pid == ::getpid());
  CHECK(job.nodes.size() == 2);
  REQUIRE(job.ranks.size() == 2);
  CHECK(job.ranks[0].node == 1);
  CHECK(job.ranks[0].cpus.empty());
  CHECK(job.ranks[1].cpus == "0-3");
  CHECK(job.ranks[1].gpus == std::vector<int>{5});
  spec.command = {"./train", std::string(5000, 'x')};
  CHECK(planned_job(spec, plan, {}).job.command.size() < 1100);
  spec.starts_mpirun = true;
  spec.command = {"ddlrun", "--mpi-engine", "", "A", "mpirun", "-n", "2"};
  CHECK(planned_job(spec, plan, {}).job.command == "mpirun -n 2");
}

TEST_CASE("a client may start and stop a timeline, if it is of this version") {
  InspectorRig rig;
  const message::ChangeTimeline start{contract::kVersion, true, "/home/me/t.json"};
  rig.request(1, start);
  CHECK(rig.answers_to(1) == std::vector<message::JobToClient>{message::TimelineChanged{"/home/me/t.json"}});
  CHECK(rig.changes == std::vector<message::ChangeTimeline>{start});
  rig.timeline = fail(ErrorCode::kUnavailable, "no timeline is recorded");
  rig.request(2, message::ChangeTimeline{contract::kVersion, false, ""});
  CHECK(rig.answers_to(2) ==
        std::vector<message::JobToClient>{message::Refused{"no timeline is recorded", false}});
  rig.request(3, message::ChangeTimeline{"0.0.1", true, ""});
  REQUIRE(rig.answers_to(3).size() == 1);
  CHECK_THAT(std::get<message::Refused>(rig.answers_to(3)[0]).why, Contains("another version"));
  CHECK(rig.changes.size() == 2);
}
