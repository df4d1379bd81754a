#include "report/timeline.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "report/timeline_fixture.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "timeline/gzip_file.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::Result;
using ddl::report::read_timeline;
using ddl::report::Timeline;
using ddl::timeline::GzipFile;

namespace {

/// Gives the text in pieces.
Result<Timeline> timeline_of(std::string_view text, std::uint64_t most = 1 << 30) {
  const auto read = [text](std::span<char> buffer) mutable -> Result<std::size_t> {
    const std::size_t size = std::min<std::size_t>({text.size(), buffer.size(), 1000});
    std::copy_n(text.begin(), size, buffer.begin());
    text.remove_prefix(size);
    return size;
  };
  return read_timeline(read, most);
}

Result<Timeline> timeline_in(const std::string& path) {
  DDL_ASSIGN(file, GzipFile::open(path));
  return read_timeline([&](std::span<char> buffer) { return file->read(buffer); });
}

std::string message_of(const Result<Timeline>& timeline) {
  REQUIRE_FALSE(timeline);
  return timeline.error().message();
}

/// A timeline with these events.
std::string with_events(const std::string& events,
                        const std::string& other = "\"version\":\"0.2.0\",\"origin_ns\":5") {
  return R"({"displayTimeUnit":"ms","traceEvents":[)" + events + R"(],"otherData":{)" + other + "}}\n";
}

constexpr char kOne[] = R"({"ph":"X","ts":1.5,"dur":2.25,"pid":3,"tid":769,"cat":"call","name":"allreduce",)"
                        R"("args":{"bytes":4000,"op":"sum","set":"world","call_number":7}})";

}  // namespace

TEST_CASE("a timeline has its ranks, tracks and events, with their details") {
  const TemporaryDirectory folder;
  TrainingJob job;
  job.ranks = 3;
  job.steps = 2;
  write_timeline(folder / "t.json", job);
  const auto timeline = timeline_in(folder / "t.json");
  REQUIRE(timeline);
  CHECK(timeline->count() == static_cast<std::size_t>(3 * 2 * TrainingJob::kEventsOfStep));
  REQUIRE(timeline->ranks.size() == 3);
  const Timeline::Rank& rank = timeline->ranks[2];
  CHECK(rank.name == "rank 2 (node2, pid 1002)");
  REQUIRE(rank.tracks.size() == 4);
  CHECK(rank.tracks[0].name == "program");
  CHECK(rank.tracks[1].name == "engine (world)");
  CHECK(rank.tracks[2].name == "wire (world)");
  CHECK(rank.tracks[3].is_of_tensors);
  CHECK(rank.tracks[3].events.size() == 2 * TrainingJob::kTensors);
  for (const Timeline::Event& event : rank.tracks[3].events) {
    CHECK(event.waited >= 0);
    CHECK(event.duration - event.waited <= 1'500'000);
    CHECK(timeline->details[event.details].find("\"bytes\"") != std::string::npos);
  }
  CHECK(timeline->notes.empty());
}

TEST_CASE("times are exact to the nanosecond") {
  const auto timeline = timeline_of(with_events(kOne));
  REQUIRE(timeline);
  const Timeline::Event& event = timeline->ranks.at(0).tracks.at(0).events.at(0);
  CHECK(event.begin == 1500);
  CHECK(event.duration == 2250);
  CHECK(event.call_number == 7);
  CHECK(timeline->details[event.details] == R"([["bytes",4000],["op","sum"],["set","world"]])");
  CHECK(timeline->ranks[0].name == "rank 3");
}

TEST_CASE("a compressed timeline is the same as a plain one, whatever its name") {
  const TemporaryDirectory folder;
  write_timeline(folder / "t.json", {});
  write_timeline(folder / "t.json.gz", {});
  std::filesystem::copy_file(folder / "t.json.gz", folder / "other");
  const auto plain = timeline_in(folder / "t.json");
  REQUIRE(plain);
  for (const char* const name : {"t.json.gz", "other"}) {
    const auto compressed = timeline_in(folder / name);
    REQUIRE(compressed);
    CHECK(compressed->count() == plain->count());
    CHECK(compressed->details == plain->details);
  }
}

TEST_CASE("a named tensor waits until its call begins; one that has none has only waited") {
  const std::string begin = R"({"ph":"b","ts":1,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":")";
  const std::string end = R"({"ph":"e","ts":9,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":")";
  const std::string phases =
      R"({"ph":"b","ts":1,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":"waiting","args":{}},)"
      R"({"ph":"e","ts":4,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":"waiting","args":{}},)"
      R"({"ph":"b","ts":4,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":"allreduce","args":{}},)"
      R"({"ph":"e","ts":9,"pid":0,"tid":0,"cat":"tensor","id":"0x1","name":"allreduce","args":{}},)";
  auto timeline =
      timeline_of(with_events(begin + R"(w","args":{"bytes":4}},)" + phases + end + R"(w","args":{}})"));
  REQUIRE(timeline);
  Timeline::Event event = timeline->ranks.at(0).tracks.at(0).events.at(0);
  CHECK(event.waited == 3000);
  CHECK(event.duration == 8000);

  timeline = timeline_of(
      with_events(begin + R"(w","args":{"bytes":4}},)" + end + R"(w","args":{"unfinished":"lost"}})"));
  REQUIRE(timeline);
  event = timeline->ranks.at(0).tracks.at(0).events.at(0);
  CHECK(event.waited == 8000);
  CHECK(timeline->details[event.details] == R"([["bytes",4],["unfinished","lost"]])");
}

TEST_CASE("a timeline says what is not in it") {
  const auto timeline = timeline_of(with_events(
      kOne, R"("version":"0.2.0","origin_ns":5,"hosts":[{"name":"node1","is_aligned":true},)"
            R"({"name":"node2","is_aligned":false,"reason":"it was lost"}],)"
            R"("incomplete_ranks":[{"rank":0,"events":9,"overwritten":3,"dropped":1}],)"
            R"("missing_ranks":[{"rank":1,"reason":"its host was lost"},{"rank":2,"reason":"too"}])"));
  REQUIRE(timeline);
  REQUIRE(timeline->notes.size() == 3);
  CHECK_THAT(timeline->notes[0], Contains("the oldest 4 events of 1 rank"));
  CHECK_THAT(timeline->notes[1], Contains("the events of 2 ranks are not known"));
  CHECK_THAT(timeline->notes[2], Contains("node2") && Contains("it was lost"));
}

TEST_CASE("what is no timeline is refused, with the reason") {
  CHECK_THAT(message_of(timeline_of("")), Contains("it is empty"));
  CHECK_THAT(message_of(timeline_of("garbage")), Contains("it is not valid JSON at byte 1"));
  CHECK_THAT(message_of(timeline_of("{\"a\":1}")), Contains("it is JSON, but no timeline"));
  CHECK_THAT(message_of(timeline_of("[]")), Contains("it is JSON, but no timeline"));
  CHECK_THAT(message_of(timeline_of("7")), Contains("it is JSON, but no timeline"));
  CHECK_THAT(message_of(timeline_of(R"({"traceEvents":[],"otherData":{}})")),
             Contains("no timeline of ddlrun"));
  CHECK_THAT(message_of(timeline_of(with_events(""))), Contains("it has no events"));
  const std::string whole = with_events(kOne);
  CHECK_THAT(message_of(timeline_of(whole.substr(0, whole.size() / 2))), Contains("it ends too early"));
  CHECK_THAT(message_of(timeline_of(whole + "x")), Contains("it is not valid JSON at byte"));
  CHECK_THAT(message_of(timeline_of(with_events("{\"ph\":\"\xff\"}"))), Contains("it is not valid JSON"));
  CHECK_THAT(message_of(timeline_of(with_events(kOne), 20)), Contains("it has more than"));
  CHECK_THAT(message_of(timeline_of(with_events("{\"name\":\"" + std::string(2 << 20, 'x') + "\"}"))),
             Contains("a text of more than 1 MiB"));
  CHECK_THAT(message_of(timeline_of(std::string(1000, '['))), Contains("lists in lists"));
}

TEST_CASE("compressed timelines that are cut or damaged are refused, and so is what is no file") {
  const TemporaryDirectory folder;
  write_timeline(folder / "t.json.gz", {});
  const std::uintmax_t size = std::filesystem::file_size(folder / "t.json.gz");
  for (const std::uintmax_t less : {std::uintmax_t{4}, size / 2}) {
    std::filesystem::resize_file(folder / "t.json.gz", size - less);
    CHECK_THAT(message_of(timeline_in(folder / "t.json.gz")), Contains("its compressed data end too early"));
  }
  write_timeline(folder / "t.json.gz", {});
  {
    std::fstream file(folder / "t.json.gz", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << std::string(100, '\xaa');
  }
  const auto damaged = timeline_in(folder / "t.json.gz");
  REQUIRE_FALSE(damaged);
  CHECK_THAT(message_of(timeline_in(folder.path())), Contains("not a regular file"));
  CHECK_THAT(message_of(timeline_in(folder / "none")), Contains("No such file"));
}

TEST_CASE("texts and numbers that no rank writes do no harm") {
  const std::string event =
      R"({"ph":"X","ts":1e300,"dur":-5,"pid":-9223372036854775808,"tid":1e99,"cat":null,)"
      R"("name":")" +
      std::string(5000, 'n') +
      R"(","args":{"bytes":1e-300,"a":{"b":[1]},"c":true,)"
      R"("call_number":18446744073709551615}})";
  const auto timeline = timeline_of(
      with_events(event + R"(,{"ph":"e","id":"5"},{"ph":"b","id":"6"},{},[],4,{"ph":"?"},)" + kOne));
  REQUIRE(timeline);
  CHECK(timeline->count() == 2);
  CHECK(timeline->titles.at(0).name.size() < 600);
}
