#include "timeline/trace_file.h"

#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "timeline/trace_checker.h"

using ddl::contract::ClockSample;
using ddl::contract::Event;
using ddl::timeline::Alignment;
using ddl::timeline::ClockMap;
using ddl::timeline::RankTrace;
using ddl::timeline::TraceFile;
using ddl::timeline::TraceJob;
using TraceJson = nlohmann::json;

namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;

RankTrace rank_with_events(std::int32_t number, int events) {
  RankTrace rank;
  rank.rank = number;
  rank.host = "node" + std::to_string(1 + number / 2);
  for (int i = 0; i < events; ++i) {
    Event event;
    event.number = static_cast<std::uint64_t>(i) + 1;
    event.kind = Event::Kind::kCall;
    event.call_kind = 1;
    event.begin = 1000 + 100 * i;
    event.end = event.begin + 50;
    rank.ring.events.push_back(event);
  }
  rank.ring.count = rank.ring.events.size();
  return rank;
}

Alignment compared(std::vector<ClockSample> samples) {
  return Alignment({std::make_shared<const ClockMap>(samples)});
}

struct Written {
  std::string text;
  TraceJson trace;
  std::vector<std::string> notes;
};

Written write_trace(const TraceJob& job, const std::vector<RankTrace>& ranks) {
  const ddl::test::TemporaryDirectory directory;
  auto file = TraceFile::create(directory / "trace.json");
  REQUIRE(file);
  REQUIRE(file->begin(job));
  for (const RankTrace& rank : ranks) REQUIRE(file->add(rank));
  auto notes = file->finish();
  REQUIRE(notes);
  Written written;
  written.text = ddl::read_file(directory / "trace.json", 16 * kMegabyte).value();
  CHECK(ddl::test::trace_errors(written.text) == std::vector<std::string>{});
  written.trace = TraceJson::parse(written.text);
  written.notes = *notes;
  return written;
}

}  // namespace

TEST_CASE("a trace file has the events of all ranks, and says how the clocks are aligned") {
  TraceJob job;
  job.hosts = {{"node1", Alignment()},
               {"node2", compared({{1000, 5000, 200}, {1'001'000, 5100, 300}})},
               {"node3", Alignment("its clock was not compared with that of another host", 0)},
               {"node4", Alignment("it too", 0)}};
  job.ranks = 4;
  job.origin = 900;
  job.max_bytes = kMegabyte;
  std::vector<RankTrace> ranks{rank_with_events(1, 3), rank_with_events(0, 2), rank_with_events(2, 0),
                               rank_with_events(3, 1)};
  ranks[2].missing = "its host \"node2\" was lost";
  ranks[3].ring.count = 10;
  const Written written = write_trace(job, ranks);
  std::map<int, int> calls;
  for (const TraceJson& event : written.trace["traceEvents"])
    if (event["ph"] == "X") ++calls[event["pid"].get<int>()];
  CHECK(calls == std::map<int, int>{{0, 2}, {1, 3}, {3, 1}});
  const TraceJson& other = written.trace["otherData"];
  CHECK(other["origin_ns"] == 900);
  CHECK(other["version"].is_string());
  CHECK(other["hosts"][0] == TraceJson{{"name", "node1"},
                                       {"is_aligned", true},
                                       {"offset_ns", 0},
                                       {"drift_ppm", 0.0},
                                       {"bound_us", 0.0},
                                       {"samples", 0}});
  CHECK(other["hosts"][1]["offset_ns"] == 5100);
  CHECK(other["hosts"][1]["drift_ppm"] == 100.0);
  CHECK(other["hosts"][1]["bound_us"] == 0.3);
  CHECK(other["hosts"][1]["samples"] == 2);
  CHECK(other["hosts"][2]["reason"] == "its clock was not compared with that of another host");
  CHECK(other["missing_ranks"] == TraceJson{{{"rank", 2}, {"reason", "its host \"node2\" was lost"}}});
  CHECK(other["incomplete_ranks"] ==
        TraceJson{{{"rank", 3}, {"events", 10}, {"overwritten", 9}, {"dropped", 0}}});
  CHECK(written.notes ==
        std::vector<std::string>{
            "the oldest 9 of 15 events are not in the timeline: ranks keep only their latest ones",
            "the times of node3 and 1 more host cannot be compared with those of other hosts: its clock was "
            "not "
            "compared with that of another host"});
}

TEST_CASE("a trace file is not longer than its limit, and says which events were dropped") {
  std::vector<RankTrace> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(rank_with_events(i, i == 2 ? 3 : 1000));
  TraceJob job;
  job.hosts = {{"node1", Alignment()}, {"node2", Alignment()}};
  job.ranks = ranks.size();
  job.max_bytes = 100'000;
  const Written written = write_trace(job, ranks);
  CHECK(written.text.size() <= job.max_bytes);
  CHECK(written.text.size() > job.max_bytes / 2);
  const TraceJson& incomplete = written.trace["otherData"]["incomplete_ranks"];
  REQUIRE(incomplete.size() == 3);
  // The numbers in the events of a later rank are longer.
  CHECK(incomplete[2]["dropped"].get<int>() == Approx(incomplete[0]["dropped"].get<int>()).epsilon(0.02));
  CHECK(incomplete[0]["events"] == 1000);
  int dropped = 0;
  for (const TraceJson& rank : incomplete) dropped += rank["dropped"].get<int>();
  CHECK(written.notes ==
        std::vector<std::string>{"the oldest " + std::to_string(dropped) +
                                 " of 3003 events were dropped, on 3 ranks, so that the timeline "
                                 "has at most 100000 bytes"});
  job.max_bytes = 0;
  CHECK(write_trace(job, ranks).text.size() < 4000);
}

TEST_CASE("a trace file without ranks is valid") { CHECK(write_trace({}, {}).notes.empty()); }

TEST_CASE("a count of events that cannot be does not confuse the sums") {
  std::vector<RankTrace> ranks(8, rank_with_events(0, 1));
  for (int i = 0; i < 8; ++i) {
    ranks[static_cast<std::size_t>(i)].rank = i;
    ranks[static_cast<std::size_t>(i)].ring.count = ~std::uint64_t{0};
  }
  TraceJob job;
  job.ranks = 8;
  job.max_bytes = kMegabyte;
  CHECK(write_trace(job, ranks).notes.size() == 1);
}

TEST_CASE("a trace whose file cannot be made is an error at the start") {
  const auto file = TraceFile::create("/proc/trace.json");
  REQUIRE_FALSE(file);
  CHECK_THAT(file.error().message(), Catch::Contains("/proc/trace.json"));
}
