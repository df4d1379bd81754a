#include "timeline/trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include <nlohmann/json.hpp>

#include "contract/rank_record.h"
#include "support/catch.h"
#include "timeline/json_text.h"
#include "timeline/trace_checker.h"

using ddl::contract::Event;
using ddl::test::event_errors;
using ddl::timeline::Alignment;
using ddl::timeline::RankEvents;
using ddl::timeline::RankTrace;
using ddl::timeline::trace_events;
using Json = nlohmann::json;
using Kind = Event::Kind;

namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
constexpr std::uint8_t kAllreduce = 1;

/// Events of rank 3 that are added one by one.
struct TestRank {
  TestRank() {
    rank.rank = 3;
    rank.host = "node2";
    rank.pid = 4242;
  }
  Event& add(Kind kind, std::int64_t begin, std::int64_t end, const std::string& name = "") {
    Event event;
    event.number = ++rank.ring.count;
    event.kind = kind;
    event.begin = begin;
    event.end = end;
    event.generation = 1;
    event.thread = 4242;
    std::memcpy(event.name.data(), name.data(), std::min(name.size(), event.name.size()));
    return rank.ring.events.emplace_back(event);
  }
  /// The events as JSON, after they have been checked.
  Json events(std::int64_t origin = 0) const {
    const RankEvents made = trace_events(rank, origin, kUnlimited);
    CHECK(event_errors(made.text) == std::vector<std::string>{});
    CHECK(made.written == rank.ring.events.size());
    return Json::parse("[" + made.text + "]");
  }
  RankTrace rank;
};

/// The first event of this phase and name; null if there is none.
Json find(const Json& events, const std::string& phase, const std::string& name) {
  for (const Json& event : events)
    if (event["ph"] == phase && event["name"] == name) return event;
  return nullptr;
}

/// The name of a track -> its events' names.
std::map<std::string, std::vector<std::string>> by_track(const Json& events) {
  std::map<std::int64_t, std::string> names;
  for (const Json& event : events)
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
  std::map<std::string, std::vector<std::string>> tracks;
  for (const Json& event : events)
    if (event["ph"] == "X" || event["ph"] == "i") tracks[names.at(event["tid"])].push_back(event["name"]);
  return tracks;
}

}  // namespace

TEST_CASE("a rank is a process with tracks for its threads, its engine and its wire") {
  TestRank rank;
  auto& call = rank.add(Kind::kCall, 1'000'000, 1'500'123);
  call.call_kind = kAllreduce;
  call.bytes = 4096;
  call.op = 1;
  call.dtype = 0x320;
  call.algorithm = 2;
  call.call = 17;
  rank.add(Kind::kExchange, 1'100'000, 1'200'000).call_kind = kAllreduce;
  rank.add(Kind::kRange, 1'600'000, 1'900'000, "forward").thread = 4300;
  rank.add(Kind::kMark, 1'650'000, 1'650'000, "epoch 2").thread = 4300;
  rank.add(Kind::kAgreement, 1'700'000, 1'750'000);
  auto& batch = rank.add(Kind::kBatch, 1'750'000, 1'900'000, "layer1");
  batch.call_kind = kAllreduce;
  batch.tensors = 12;
  rank.add(Kind::kPacking, 1'760'000, 1'770'000, "left over");
  rank.add(Kind::kUnpacking, 1'880'000, 1'890'000).status = 4;
  rank.add(Kind::kStep, 1'900'000, 1'900'000).generation = 0x3f2a91c0;
  rank.add(Kind::kWait, 1'950'000, 1'960'000, "layer1");
  const Json events = rank.events(1'000'000);
  CHECK(find(events, "M", "process_name")["args"]["name"] == "rank 3 (node2, pid 4242)");
  CHECK(find(events, "M", "process_name")["pid"] == 3);
  CHECK(find(events, "M", "process_labels").is_null());
  using Tracks = std::map<std::string, std::vector<std::string>>;
  CHECK(by_track(events) == Tracks{{"program", {"allreduce", "wait"}},
                                   {"thread 2", {"forward", "epoch 2"}},
                                   {"engine (world)", {"agreement", "allreduce", "packing", "unpacking"}},
                                   {"engine (set 3f2a91c0)", {"step"}},
                                   {"wire (world)", {"allreduce"}}});
  const Json first = find(events, "X", "allreduce");
  CHECK(first["ts"] == 0.0);
  CHECK(first["dur"] == 500.123);
  CHECK(first["cat"] == "call");
  CHECK(first["args"] == Json{{"bytes", 4096},
                              {"op", "average"},
                              {"dtype", "float32"},
                              {"algorithm", "slices"},
                              {"set", "world"},
                              {"call_number", 17}});
  CHECK(find(events, "X", "unpacking")["args"]["status"] == "timeout");
  CHECK(find(events, "X", "wait")["args"]["tensor"] == "layer1");
  CHECK(find(events, "i", "epoch 2")["s"] == "t");
}

TEST_CASE("a named tensor is an asynchronous event with the time in which it waits and its call") {
  TestRank rank;
  auto& tensor = rank.add(Kind::kTensor, 1000, 9000, "layer1.weight");
  tensor.started = 4000;
  tensor.call_kind = kAllreduce;
  tensor.bytes = 8;
  rank.add(Kind::kTensor, 2000, 3000, "failed early").status = 6;
  rank.add(Kind::kTensor, 2000, Event::kOpen, "waits");
  rank.rank.fate = "it was killed by SIGKILL";
  const Json events = rank.events();
  std::vector<std::string> phases;
  std::string id;
  for (const Json& event : events) {
    if (event["ph"] != "b" && event["ph"] != "e") continue;
    if (id.empty()) id = event["id"];
    if (event["id"] == id)
      phases.push_back(event["ph"].get<std::string>() + " " + event["name"].get<std::string>() + " " +
                       event["ts"].dump());
  }
  CHECK(phases == std::vector<std::string>{"b layer1.weight 1.0", "b waiting 1.0", "e waiting 4.0",
                                           "b allreduce 4.0", "e allreduce 9.0", "e layer1.weight 9.0"});
  CHECK(find(events, "b", "layer1.weight")["args"]["call"] == "allreduce");
  CHECK(find(events, "b", "failed early")["args"]["status"] == "aborted");
  CHECK(find(events, "e", "waits")["ts"] == 9.0);
  CHECK(find(events, "e", "waits")["args"]["unfinished"] == "it was killed by SIGKILL");
  CHECK(find(events, "e", "failed early")["args"].empty());
}

TEST_CASE("what has not ended does so at the last known time of the rank") {
  TestRank rank;
  rank.add(Kind::kCall, 1000, Event::kOpen).call_kind = 13;
  rank.add(Kind::kRange, 2000, Event::kOpen, "inner");
  rank.add(Kind::kMark, 7000, 7000, "last");
  const Json events = rank.events();
  CHECK(find(events, "X", "barrier")["dur"] == 6.0);
  CHECK(find(events, "X", "inner")["dur"] == 5.0);
  CHECK(find(events, "X", "inner")["args"]["unfinished"] == "it had not ended when the events were read");
}

TEST_CASE("what has not ended lasts until the events were read") {
  TestRank rank;
  rank.add(Kind::kTensor, 500, Event::kOpen, "tensor");
  rank.add(Kind::kCall, 1000, Event::kOpen).call_kind = 13;
  rank.rank.read_at = 89'000'001'000;
  const Json events = rank.events();
  CHECK(find(events, "X", "barrier")["dur"] == 89e6);
  CHECK(find(events, "e", "tensor")["ts"] == 89e6 + 1);
  rank.rank.read_at = 700;  // what a rank writes meanwhile is later than that
  CHECK(find(rank.events(), "e", "tensor")["ts"] == 1.0);
}

TEST_CASE("an event that ends after the one that it began in is cut") {
  TestRank rank;
  rank.add(Kind::kRange, 1000, 5000, "outer");
  rank.add(Kind::kRange, 2000, 8000, "too long");
  rank.add(Kind::kRange, 3000, 9000, "also");
  rank.add(Kind::kRange, 5000, 6000, "next");
  rank.add(Kind::kRange, 1000, 9500, "around");
  const Json events = rank.events();
  CHECK(find(events, "X", "around")["dur"] == 8.5);
  CHECK(find(events, "X", "outer")["dur"] == 4.0);
  CHECK(find(events, "X", "too long")["dur"] == 3.0);
  CHECK(find(events, "X", "also")["dur"] == 2.0);
  CHECK(find(events, "X", "next")["dur"] == 1.0);
}

TEST_CASE("a range that is assigned to another does not cut the one that follows") {
  TestRank rank;
  rank.add(Kind::kRange, 1000, 9000, "outer");
  rank.add(Kind::kRange, 2000, 5050, "forward");
  rank.add(Kind::kCall, 4000, 4900);
  rank.add(Kind::kRange, 5000, 8000, "backward");
  const Json events = rank.events();
  CHECK(find(events, "X", "outer")["dur"] == 8.0);
  CHECK(find(events, "X", "forward")["dur"] == 3.0);
  CHECK(find(events, "X", "call")["dur"] == 0.9);
  CHECK(find(events, "X", "backward")["dur"] == 3.0);
}

TEST_CASE("names with quotes, control characters and bytes that are not UTF-8 are valid JSON") {
  for (const std::string& name : {std::string("a\"b\\c"), std::string("tab\there\nline\x01\x7f"),
                                  std::string("\xff\xc3\x28 \xed\xa0\x80"), std::string("gr\xc3\xbc\xc3\x9f"),
                                  std::string(59, 'x') + "\xc3"}) {
    TestRank rank;
    rank.rank.host = name;
    rank.rank.missing = name;
    rank.rank.fate = name;
    rank.add(Kind::kRange, 1000, Event::kOpen, name);
    rank.add(Kind::kTensor, 1000, Event::kOpen, name);
    CHECK(rank.events().is_array());
  }
  std::string text;
  ddl::timeline::append_quoted(text, "gr\xc3\xbc\xc3\x9f \"\n");
  CHECK(text == "\"gr\xc3\xbc\xc3\x9f \\\"\\n\"");
}

TEST_CASE("Perfetto gets every nanosecond of a time") {
  std::mt19937_64 random(1);
  const auto read = [](const std::string& text) { return static_cast<std::int64_t>(std::stod(text) * 1000); };
  for (int bits = 0; bits < 50; ++bits) {
    for (int i = 0; i < 200; ++i) {
      const auto time = static_cast<std::int64_t>(random() & ((std::uint64_t{1} << bits) - 1));
      std::string text;
      ddl::timeline::append_microseconds(text, time);
      REQUIRE(read(text) == time);
    }
  }
  std::string text;
  ddl::timeline::append_microseconds(text, 12'345'078);
  CHECK(text == "12345.078");
}

TEST_CASE("a rank without events is a process that says why") {
  TestRank rank;
  rank.rank.missing = "its host was lost";
  rank.rank.clock = Alignment("its clock was not compared with that of another host", 0);
  const Json events = rank.events();
  CHECK(find(events, "M", "process_name")["args"]["name"] == "rank 3 (node2, pid 4242): no events");
  CHECK(find(events, "M", "process_labels")["args"]["labels"] ==
        "its host was lost; clock not aligned: its clock was not compared with that of another host");
}

TEST_CASE("an ordered call and one for named tensors of the same set have tracks of their own") {
  TestRank rank;
  rank.add(Kind::kExchange, 1000, 5000);
  rank.add(Kind::kExchange, 2000, 8000).thread = 7;
  const Json events = rank.events();
  CHECK(by_track(events).size() == 2);
  CHECK(by_track(events).contains("wire (world, thread 2)"));
}

TEST_CASE("any number of threads and sets has a limited number of tracks") {
  TestRank rank;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::int64_t begin = 1000 + 10 * i;
    rank.add(Kind::kRange, begin, begin + 25, "range").thread = i;
    rank.add(Kind::kPacking, begin, begin + 25).generation = i << 20;
    auto& exchange = rank.add(Kind::kExchange, begin, begin + 25);
    exchange.generation = i << 20;
    exchange.thread = i;
  }
  const auto tracks = by_track(rank.events());
  CHECK(tracks.size() == 3 * 64);
  CHECK(tracks.contains("other threads"));
  CHECK(tracks.contains("engine (other sets)"));
}

TEST_CASE("the oldest events are dropped if the text would be too long") {
  TestRank rank;
  for (int i = 0; i < 100; ++i) {
    rank.add(Kind::kRange, 1000 + 10 * i, 1000 + 10 * i + 5, "range " + std::to_string(i));
    rank.add(Kind::kTensor, 1000 + 10 * i, 1000 + 10 * i + 50, "tensor").started = 1020 + 10 * i;
  }
  const RankEvents all = trace_events(rank.rank, 0, kUnlimited);
  CHECK(all.dropped == 0);
  for (std::size_t max = 0; max < all.text.size() + 50; max += 501) {
    const RankEvents some = trace_events(rank.rank, 0, max);
    CHECK(event_errors(some.text) == std::vector<std::string>{});
    CHECK(some.written + some.dropped == 200);
    if (max > 2000) {
      CHECK(some.text.size() <= max);
      CHECK(some.text.size() + 1000 > std::min(max, all.text.size()));
      CHECK(some.text.find("range 99") != std::string::npos);
    }
  }
  CHECK(trace_events(rank.rank, 0, all.text.size()).text == all.text);
  CHECK(trace_events(rank.rank, 0, 0).written == 0);
}

TEST_CASE("random snapshots are valid traces") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 400; ++round) {
    TestRank rank;
    const bool is_garbage = round % 2 == 0;
    // Few different times, so that events overlap and touch in all ways.
    const std::uint64_t range = std::uint64_t{1} << (2 + random() % 30);
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      std::array<std::uint64_t, sizeof(Event) / 8> words{};
      if (is_garbage)
        for (auto& word : words) word = random();
      auto event = std::bit_cast<Event>(words);
      if (!is_garbage || random() % 4 != 0) {
        event.begin = static_cast<std::int64_t>(1 + random() % range);
        event.end =
            random() % 5 == 0 ? Event::kOpen : event.begin + static_cast<std::int64_t>(random() % range);
        event.started = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % range);
        event.kind = static_cast<Kind>(1 + random() % 11);
        event.thread = static_cast<std::uint32_t>(random() % 3);
        event.generation = static_cast<std::uint32_t>(random() % 3);
      }
      rank.rank.ring.events.push_back(event);
    }
    const auto origin = is_garbage && round % 4 == 0 ? static_cast<std::int64_t>(random()) : 0;
    const RankEvents made = trace_events(rank.rank, origin, random() % 2 == 0 ? kUnlimited : random() % 5000);
    REQUIRE(event_errors(made.text) == std::vector<std::string>{});
  }
}
