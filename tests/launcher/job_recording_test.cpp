// What the head does with what ranks have recorded: it collects that, and writes timelines.
#include "launcher/head/job_recording.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "launcher/loop_driver.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "timeline/trace_checker.h"

using namespace ddl;
using namespace ddl::launcher;
using Catch::Matchers::Contains;
using contract::Event;

namespace {

/// Calls of a rank whose clock is so many nanoseconds ahead.
timeline::RingSnapshot recorded_calls(int events, std::int64_t ahead = 0) {
  timeline::RingSnapshot ring;
  for (int i = 0; i < events; ++i) {
    Event event;
    event.number = static_cast<std::uint64_t>(i) + 1;
    event.kind = Event::Kind::kCall;
    event.call_kind = 1;
    event.begin = 1'000'000 + 1000 * i + ahead;
    event.end = event.begin + 500;
    ring.events.push_back(event);
  }
  ring.count = ring.events.size();
  return ring;
}

/// Agents whose ranks have recorded this. They answer later, in pieces of at most two events, when the loop runs.
struct FakeAgents {
  EventLoop loop;
  ddl::launcher::test::LoopDriver driver{loop};
  std::map<int, timeline::RingSnapshot> rings;
  std::set<int> silent;   ///< ranks whose agent does not answer
  std::set<int> invalid;  ///< ranks whose agent sends what is no event
  std::vector<message::AskEvents> asked;
  std::size_t most_at_once = 0;  ///< questions that were open at the same time
  std::size_t open = 0;
  std::function<void(const message::Events&)> on_events;

  void ask(const message::AskEvents& ask) {
    asked.push_back(ask);
    if (silent.contains(ask.rank)) return;
    most_at_once = std::max(most_at_once, ++open);
    loop.post([this, ask] {
      --open;
      timeline::RingSnapshot ring = rings[ask.rank];
      const std::int64_t earliest = ring.events.empty() ? 0 : ring.events.front().begin;
      if (std::ssize(ring.events) > ask.latest)
        ring.events.erase(ring.events.begin(), ring.events.end() - ask.latest);
      message::Events piece = message::events_message(ask, ring, 2);
      piece.earliest = earliest;
      piece.now = 77;
      if (invalid.contains(ask.rank)) piece.events = "no event";
      on_events(piece);
      driver.check();
    });
  }
};

/// A collector and what it has given.
struct CollectorRig : FakeAgents {
  std::map<int, CollectedEvents> collected;
  int done = 0;
  std::set<int> unreachable;  ///< ranks whose agent is known to be lost
  EventCollector collector;

  explicit CollectorRig(std::size_t parallel = EventCollector::kParallel,
                        std::chrono::milliseconds limit = EventCollector::kLimit)
      : collector(loop, 5, true,
                  {[this](const message::AskEvents& question) {
                     if (unreachable.contains(question.rank)) return false;
                     ask(question);
                     return true;
                   },
                   [this](CollectedEvents&& one) {
                     CHECK(done == 0);
                     const bool is_new = !collected.contains(one.rank);
                     CHECK(is_new);
                     collected.insert_or_assign(one.rank, std::move(one));
                   },
                   [this] {
                     ++done;
                     driver.check();
                   }},
                  parallel, limit) {
    on_events = [this](const message::Events& piece) { collector.on_events(piece); };
  }
  void collect(const std::vector<int>& ranks) {
    collector.start(ranks, 1000);
    CHECK(done == 0);  // not from inside: on_done may destroy the collector
    driver.run_until("the end", [this] { return done > 0; });
    driver.run_ready();
    CHECK(done == 1);
    CHECK(collected.size() == ranks.size());
  }
};

}  // namespace

TEST_CASE("a collector asks for all pieces of all ranks, a few ranks at a time") {
  CollectorRig rig(3);
  std::vector<int> ranks;
  for (int rank = 0; rank < 10; ++rank) {
    rig.rings[rank] = recorded_calls(rank);
    ranks.push_back(rank);
  }
  rig.collect(ranks);
  CHECK(rig.most_at_once == 3);
  for (const auto& [rank, one] : rig.collected) {
    CHECK(one.rank == rank);
    CHECK(one.missing.empty());
    CHECK(one.now == 77);
    CHECK(one.ring == rig.rings[rank]);
  }
  for (const message::AskEvents& ask : rig.asked) {
    CHECK(ask.id == 5);
    CHECK(ask.latest == 1000);
    CHECK(ask.of_timeline);
  }
}

TEST_CASE("a collector without ranks is done at once, but not from inside start()") {
  CollectorRig rig;
  rig.collect({});
}

TEST_CASE("a collector does not wait for an agent that does not answer, is lost, or sends what is invalid") {
  CollectorRig rig(2, std::chrono::milliseconds(1));
  for (int rank = 0; rank < 5; ++rank) rig.rings[rank] = recorded_calls(3);
  rig.silent = {0};
  rig.unreachable = {1, 4};
  rig.invalid = {2};
  rig.collect({0, 1, 2, 3, 4});
  CHECK(rig.collected[0].missing == "its agent did not answer");
  CHECK(rig.collected[1].missing == "its host was lost");
  CHECK(rig.collected[2].missing == "its agent sent something invalid");
  CHECK(rig.collected[3].ring.events.size() == 3);
  CHECK(rig.collected[4].missing == "its host was lost");
}

TEST_CASE("a collector keeps what came before an agent was lost, and takes nothing that comes later") {
  CollectorRig rig(8, std::chrono::hours(1));
  rig.silent = {0, 1};
  rig.collector.start({0, 1}, 10);
  const auto ring = recorded_calls(4);
  rig.collector.on_events(message::events_message({5, 0, 10, 0}, ring, 2));
  rig.collector.on_events(message::events_message({6, 1, 10, 0}, ring, 2));  // the answer to another question
  rig.collector.on_events(message::events_message({5, 7, 10, 0}, ring, 2));  // of a rank that was not asked
  rig.collector.on_lost([](int rank) { return rank == 0; }, "its host was lost");
  REQUIRE(rig.collected.size() == 1);
  CHECK(rig.collected[0].missing == "its host was lost");
  CHECK(rig.collected[0].ring.events.size() == 2);
  rig.collector.on_events(message::events_message({5, 0, 10, 2}, ring, 2));
  rig.collector.on_lost([](int) { return true; }, "the same");
  rig.driver.run_until("the end", [&] { return rig.done == 1; });
  CHECK(rig.collected.size() == 2);
}

namespace {

/// The recording of a job with two ranks on each of two nodes.
struct RecordingRig : FakeAgents {
  ddl::test::TemporaryDirectory directory;
  JobReport report;
  std::vector<std::string> notes;
  std::vector<std::int64_t> recorded;  ///< RecordTimeline messages
  bool is_done = false;
  JobRecording recording{
      loop,
      {{"node1", 0}, {"node1", 0}, {"node2", 1}, {"node2", 1}},
      {[this](const message::AskEvents& question) { ask(question); },
       [this](const message::RecordTimeline& message) { recorded.push_back(message.events); },
       [this]() -> const JobReport& { return report; },
       [this](const std::string& sentence) {
         notes.push_back(sentence);
         driver.check();
       }}};
  std::string path = directory / "t.json";

  RecordingRig() {
    report.ranks.resize(4);
    for (int rank = 0; rank < 4; ++rank) report.ranks[static_cast<std::size_t>(rank)].rank = rank;
    on_events = [this](const message::Events& piece) { recording.on_events(piece); };
  }
  void set_all_ranks() {
    for (int rank = 0; rank < 4; ++rank) rings[rank] = recorded_calls(5, rank < 2 ? 0 : 3'000'000'000);
    // Rank 2 has compared its clock with that of rank 0.
    rings[2].clock_peer = 0;
    rings[2].samples = {{3'001'000'000, -3'000'000'000, 100}};
  }
  void write() {
    is_done = false;
    REQUIRE(recording.write_timeline([this] {
      is_done = true;
      driver.check();
    }));
    driver.run_until("the timeline", [this] { return is_done; });
  }
  nlohmann::json written() {
    const std::string text = read_file(path, std::size_t{1} << 20).value();
    CHECK(ddl::test::trace_errors(text) == std::vector<std::string>{});
    return nlohmann::json::parse(text);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      found.push_back(entry.path().filename());
    return found;
  }
};

}  // namespace

TEST_CASE("a job's recording writes the events of all ranks on one axis") {
  RecordingRig rig;
  rig.set_all_ranks();
  rig.report.ranks[1].pid = 4711;
  CHECK_FALSE(rig.recording.write_timeline([] {}));
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  CHECK(rig.names().empty());
  rig.write();
  REQUIRE(rig.notes.size() == 1);
  CHECK_THAT(rig.notes[0], Contains("the timeline is in " + rig.path));
  CHECK(rig.recorded == std::vector<std::int64_t>{0});
  const nlohmann::json trace = rig.written();
  std::map<int, std::vector<double>> begins;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") begins[event["pid"].get<int>()].push_back(event["ts"].get<double>());
  for (int rank = 0; rank < 4; ++rank) CHECK(begins[rank] == std::vector<double>{0, 1, 2, 3, 4});
  CHECK_THAT(trace.dump(), Contains("rank 1 (node1, pid 4711)"));
  CHECK(trace["otherData"]["hosts"][1]["offset_ns"] == -3'000'000'000);
  JobReport report;
  rig.recording.add_to(report);
  CHECK(report.timeline == rig.path);
  CHECK_FALSE(rig.recording.write_timeline([] {}));
}

TEST_CASE("if nothing was recorded there is no timeline, and what was at its path stays") {
  RecordingRig rig;
  std::ofstream(rig.path) << "old";
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  rig.write();
  CHECK(rig.notes ==
        std::vector<std::string>{
            "no timeline was written: no rank has begun a call of libddl while it was recorded"});
  CHECK(read_file(rig.path, 100).value() == "old");
  CHECK(rig.names() == std::vector<std::string>{"t.json"});
  JobReport report;
  rig.recording.add_to(report);
  CHECK(report.timeline.empty());
}

TEST_CASE("ranks of a lost node are missing in the timeline, which says so, and why a rank has not ended") {
  RecordingRig rig;
  rig.set_all_ranks();
  rig.rings[0].events.back().end = Event::kOpen;
  rig.report.ranks[0].kind = RankOutcome::Kind::kSignalled;
  rig.report.ranks[0].signal = 9;
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  rig.recording.on_lost(1);
  rig.write();
  const nlohmann::json trace = rig.written();
  CHECK(trace["otherData"]["missing_ranks"] ==
        nlohmann::json::parse(
            R"([{"rank": 2, "reason": "its host was lost"}, {"rank": 3, "reason": "its host was lost"}])"));
  CHECK(trace["otherData"]["hosts"][1]["is_aligned"] == false);
  CHECK_THAT(trace.dump(), Contains("\"unfinished\":\"the rank was ended by signal 9\""));
  for (const message::AskEvents& ask : rig.asked) CHECK(ask.rank < 2);
}

TEST_CASE("a node that is lost while a timeline is written does not stop it") {
  RecordingRig rig;
  rig.set_all_ranks();
  rig.silent = {2, 3};
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  REQUIRE(rig.recording.write_timeline([&] {
    rig.is_done = true;
    rig.driver.check();
  }));
  rig.driver.run_ready();
  CHECK_FALSE(rig.is_done);
  rig.recording.on_lost(1);
  rig.driver.run_until("the timeline", [&] { return rig.is_done; });
  CHECK(rig.written()["otherData"]["missing_ranks"].size() == 2);
}

TEST_CASE("agents are said to be lost only if they are, when a timeline is not written") {
  RecordingRig rig;
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  rig.recording.on_lost(0);
  rig.recording.give_up();  // the spawner of the other node was killed, say
  CHECK_THAT(rig.notes.back(), !Contains("lost") && Contains("the job did not end in order"));
  rig.recording.on_lost(1);
  rig.recording.give_up();
  CHECK_THAT(rig.notes.back(), Contains("the agents, which have it, were lost"));
}

TEST_CASE("a timeline is started and stopped by request, once at a time") {
  RecordingRig rig;
  rig.set_all_ranks();
  JobSpec spec;
  spec.workdir = rig.directory.path();
  spec.timeline_bytes = 1 << 20;
  const auto change = [&](bool starts, const std::string& path = "") {
    return rig.recording.change({"", starts, path}, spec);
  };
  const auto message_of = [](const Result<std::string>& result) {
    return result ? "accepted" : result.error().message();
  };
  CHECK_THAT(message_of(change(false)), Contains("no timeline is recorded: begin"));
  CHECK_THAT(message_of(change(true, "/proc/t.json")), Contains("/proc/t.json"));
  spec.starts_mpirun = true;
  CHECK_THAT(message_of(change(true)), Contains("mpirun has started the ranks"));
  spec.starts_mpirun = false;
  CHECK(rig.recorded.empty());
  CHECK(change(true, rig.path).value() == rig.path);
  REQUIRE(rig.recorded.size() == 1);
  CHECK(rig.recorded[0] > 0);
  CHECK_THAT(message_of(change(true)), Contains("a timeline is recorded already, for " + rig.path + ": end"));
  CHECK(change(false).value() == rig.path);
  CHECK(message_of(change(true)) == "the timeline is being written to " + rig.path);
  // A second stop, and the end of the job, wait for the same file.
  CHECK(change(false).value() == rig.path);
  rig.write();
  CHECK(rig.notes.size() == 1);
  CHECK(rig.recorded.back() == 0);
  CHECK_THAT(message_of(change(false)), Contains("no timeline is recorded: begin"));
  const auto own = change(true);
  CHECK_THAT(own.value(), Contains("ddlrun-" + std::to_string(::getpid()) + "-timeline.json"));
  rig.path = *own;
  rig.write();
  CHECK(rig.written()["traceEvents"].size() > 20);
  // Answers to one are never taken for those to another.
  std::set<std::int64_t> ids;
  for (const message::AskEvents& ask : rig.asked) ids.insert(ask.id);
  CHECK(ids.size() == 4);
}

TEST_CASE("the last events of the first failed rank come first, and are asked for once") {
  RecordingRig rig;
  rig.set_all_ranks();
  rig.rings[2] = {};
  rig.report.first_failure = 3;
  rig.recording.on_lost(0);
  rig.recording.ask_for_histories();
  rig.recording.ask_for_histories();
  rig.driver.run_ready();
  for (int i = 0; i < 8; ++i) rig.driver.run_ready();
  JobReport report;
  rig.recording.add_to(report);
  REQUIRE(report.histories.size() == 1);  // rank 2 has recorded nothing
  CHECK(report.histories[0].rank == 3);
  CHECK(report.histories[0].now == 77);
  CHECK(report.histories[0].events.size() == 5);
  REQUIRE_FALSE(rig.asked.empty());
  CHECK(rig.asked[0].rank == 3);
  CHECK(rig.asked[0].latest == RankHistory::kEvents);
  CHECK_FALSE(rig.asked[0].of_timeline);
}

TEST_CASE("a timeline whose file cannot be written at the end is reported, and does not stop the job") {
  RecordingRig rig;
  rig.set_all_ranks();
  const std::string folder = rig.directory / "folder";
  std::filesystem::create_directory(folder);
  rig.path = folder + "/t.json";
  REQUIRE(rig.recording.plan_timeline(rig.path, 1 << 20));
  std::filesystem::remove(folder);
  rig.write();
  REQUIRE(rig.notes.size() == 1);
  CHECK_THAT(rig.notes[0], Contains("no timeline was written: ") && Contains(rig.path));
  CHECK(rig.recorded.back() == 0);
}
