// What the report of a failure says that ranks did last.
#include "launcher/job/rank_history.h"

#include <limits>
#include <string_view>

#include "support/catch.h"

using namespace ddl::launcher;
using ddl::contract::Event;
using EventKind = Event::Kind;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// begin and end in milliseconds; an end of 0: it has not ended.
Event history_event(EventKind kind, std::int64_t begin, std::int64_t end, std::string_view name = "") {
  Event event;
  event.kind = kind;
  event.begin = begin * kMillisecond;
  event.end = end * kMillisecond;
  name.copy(event.name.data(), event.name.size());
  return event;
}

Event history_call(std::uint8_t kind, std::uint64_t number, std::int64_t begin, std::int64_t end,
                   std::int16_t status = 0) {
  Event event = history_event(EventKind::kCall, begin, end);
  event.call_kind = kind;
  event.call = number;
  event.status = status;
  return event;
}

struct Work {
  std::string text;
  double seconds = 0;
};
/// At 1000 ms.
Work work_of(std::vector<Event> events) {
  Work work;
  work.text = last_work({0, 1000 * kMillisecond, std::move(events)}, work.seconds);
  return work;
}

}  // namespace

TEST_CASE("a rank is in the innermost thing that has not ended") {
  CHECK(work_of({}).text.empty());
  const Work call =
      work_of({history_event(EventKind::kRange, 100, 0, "step 3"), history_call(1, 812, 600, 0)});
  CHECK(call.text == "allreduce #812");
  CHECK(call.seconds == Approx(0.4));
  CHECK(work_of({history_event(EventKind::kRange, 100, 0, "step 3"), history_call(1, 812, 600, 700)}).text ==
        "\"step 3\"");
  CHECK(work_of({history_event(EventKind::kWait, 900, 0, "layer7")}).text == "a wait for tensor \"layer7\"");
  CHECK(work_of({history_event(EventKind::kWait, 900, 0, "ddl_join")}).text == "ddl_join");
  CHECK(work_of({history_event(EventKind::kAgreement, 900, 0)}).text == "agreeing on named tensors");
  Event batch = history_event(EventKind::kBatch, 900, 0, "layer7");
  batch.call_kind = 1;
  batch.tensors = 2;
  CHECK(work_of({batch}).text == "allreduce of 2 named tensors, the first of them \"layer7\"");
  CHECK(work_of({history_call(0, 5, 900, 0)}).text == "a call #5");
  CHECK(work_of({history_call(255, 5, 900, 0)}).text == "a call #5");
}

TEST_CASE("a rank that is in nothing is in user code after what ended last") {
  const Work work = work_of({history_call(1, 811, 100, 800), history_event(EventKind::kWait, 200, 300, "w"),
                             history_call(1, 1, 1, 2)});
  CHECK(work.text == "user code after allreduce #811");
  CHECK(work.seconds == Approx(0.2));
  CHECK(work_of({history_call(1, 811, 100, 800, 4)}).text == "user code after allreduce #811, which failed,");
}

TEST_CASE("tensors, exchanges, packing, marks and steps are nothing that a rank is in") {
  for (const EventKind kind : {EventKind::kTensor, EventKind::kExchange, EventKind::kPacking,
                               EventKind::kUnpacking, EventKind::kMark, EventKind::kStep})
    CHECK(work_of({history_event(kind, 900, 0, "x")}).text.empty());
}

TEST_CASE("a rank in ddl_init is in no call of the program before") {
  double seconds = 0;
  CHECK(last_work({0, 1000 * kMillisecond, {history_call(1, 6, 1, 2)}, 400 * kMillisecond}, seconds) ==
        "ddl_init");
  CHECK(seconds == 0.6);
}

TEST_CASE("a clock that runs backwards, and times that cannot be, give no negative seconds") {
  CHECK(work_of({history_call(1, 1, 2000, 0)}).seconds == 0);
  CHECK(work_of({history_call(1, 1, 2000, 3000)}).seconds == 0);
  std::vector<Event> one{history_call(1, 1, 1, 0)};
  one.front().begin = std::numeric_limits<std::int64_t>::min();
  double seconds = 0;
  (void)last_work({0, std::numeric_limits<std::int64_t>::max(), one}, seconds);
  CHECK(seconds > 0);
}

TEST_CASE("the ranks that did the same share a sentence, with the longest time") {
  const auto history = [](int rank, std::int64_t now, std::vector<Event> events) {
    return RankHistory{rank, now * kMillisecond, std::move(events)};
  };
  const std::vector<Event> in_barrier{history_call(1, 6, 1, 2), history_call(11, 7, 600, 0)};
  const std::vector<Event> after{history_call(1, 6, 1, 2)};
  const auto sentences =
      last_work_sentences({history(3, 1000, in_barrier), history(2, 20'002, after),
                           history(0, 1100, in_barrier), history(1, 1000, {}), history(10, 900, in_barrier)});
  REQUIRE(sentences.size() == 2);
  CHECK_THAT(sentences[0],
             Catch::StartsWith("ranks 0, 3, 10 were in ") && Catch::EndsWith(" #7 for 0.500 s"));
  CHECK(sentences[1] == "rank 2 was in user code after allreduce #6 for 20 s");
  CHECK(last_work_sentences({}).empty());
}
