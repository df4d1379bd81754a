#include "launcher/output/output_mux.h"

#include <map>

#include "launcher_output/fakes.h"
#include "support/catch.h"

using ddl::launcher::ChunkEnd;
using ddl::launcher::OutputMux;
using ddl::launcher::OutputMuxOptions;
using ddl::launcher::OutputStream;
using namespace ddl::test;

namespace {

using TimePoint = OutputMux::TimePoint;

/// A mux of three ranks with recording sinks and a clock that the test sets.
struct Head {
  enum class Screens { kShared, kSeparate };

  explicit Head(Screens screens = Screens::kShared, void (*change)(OutputMuxOptions&) = nullptr) {
    OutputMuxOptions options;
    options.num_ranks = 3;
    options.stdout_sink = &out;
    options.stderr_sink = screens == Screens::kShared ? &out : &err;
    options.on_consumed = [this](int rank, OutputStream stream, std::size_t bytes) {
      consumed[{rank, stream}] += bytes;
      ++num_refunds;
    };
    options.on_deadline = [this](std::optional<TimePoint> when) { deadlines.push_back(when); };
    options.now = [this] { return now; };
    if (change != nullptr) change(options);
    mux = std::make_unique<OutputMux>(std::move(options));
  }
  Head& accept(int rank, OutputStream stream, ChunkEnd end, std::string_view bytes) {
    mux->accept(chunk(rank, stream, end, bytes));
    return *this;
  }

  RecordingSink out;
  RecordingSink err;
  std::map<std::pair<int, OutputStream>, std::size_t> consumed;
  int num_refunds = 0;
  std::vector<std::optional<TimePoint>> deadlines;
  TimePoint now{std::chrono::seconds(1000)};
  std::unique_ptr<OutputMux> mux;
};

}  // namespace

TEST_CASE("chunks are shown at once and in the order in which they come") {
  Head head;
  head.accept(0, kStdout, kLine, "a\n").accept(2, kStderr, kLine, "b\n");
  CHECK(head.out.writes == std::vector<std::string>{"[0]<stdout>:a\n", "[2]<stderr>:b\n"});
  // The sink is busy: what comes now travels together when it is free.
  head.accept(1, kStdout, kLine, "c\n").accept(0, kStderr, kLine, "d\n").accept(1, kStdout, kLine, "e\n");
  CHECK(head.out.writes.size() == 2);
  head.out.complete_one();
  CHECK(head.out.writes.back() == "[1]<stdout>:c\n[0]<stderr>:d\n[1]<stdout>:e\n");
}

TEST_CASE("standard output and error go to their own sinks") {
  Head head(Head::Screens::kSeparate);
  head.accept(0, kStdout, kOpen, "a").accept(0, kStderr, kLine, "b\n").accept(1, kStdout, kLine, "c\n");
  CHECK(head.out.text == "[0]<stdout>:a");
  CHECK(head.err.text == "[0]<stderr>:b\n");
}

TEST_CASE("an unfinished line keeps others back, on a shared sink the other stream too") {
  Head head;
  head.accept(0, kStdout, kOpen, "a").accept(0, kStderr, kLine, "x\n").accept(1, kStdout, kLine, "y\n");
  head.accept(0, kStdout, kOpen, "b").accept(0, kStdout, kLine, "c\nd\n");
  head.out.complete_all();
  CHECK(head.out.text == "[0]<stdout>:abc\n[0]<stdout>:d\n[0]<stderr>:x\n[1]<stdout>:y\n");
  CHECK(head.mux->is_idle());
}

TEST_CASE("bytes are reported when the sink has taken them, not before") {
  Head head;
  head.accept(0, kStdout, kLine, "abc\n");
  CHECK(head.consumed.empty());
  head.out.complete_one();
  CHECK(head.consumed[{0, kStdout}] == 4);
  // Those that wait for another's line are not reported either.
  head.accept(1, kStdout, kOpen, "12345").accept(2, kStdout, kLine, "6\n");
  head.out.complete_all();
  CHECK(head.consumed[{1, kStdout}] == 5);
  CHECK(head.consumed[{2, kStdout}] == 0);
  CHECK(head.mux->held_bytes() == 2);
  head.accept(1, kStdout, kEof, "");
  head.out.complete_all();
  CHECK(head.consumed[{2, kStdout}] == 2);
  CHECK(head.mux->held_bytes() == 0);
}

TEST_CASE("credit is returned in steps") {
  Head head(Head::Screens::kShared, [](OutputMuxOptions& options) { options.refund_step = 10; });
  for (int i = 0; i < 25; ++i) {
    head.accept(0, kStdout, kLine, "a\n");
    head.out.complete_all();
  }
  CHECK(head.consumed[{0, kStdout}] == 50);
  CHECK(head.num_refunds == 5);
}

TEST_CASE("with files, bytes are reported when both sinks have taken them") {
  static RecordingSink file;
  file = RecordingSink();
  Head head(Head::Screens::kShared, [](OutputMuxOptions& options) {
    options.file_sink = [](int rank, OutputStream) { return rank == 0 ? &file : nullptr; };
  });
  head.accept(0, kStdout, kOpen, "abc").accept(1, kStdout, kLine, "x\n");
  CHECK(file.text == "abc");
  head.out.complete_all();
  CHECK(head.consumed.empty());
  CHECK_FALSE(head.mux->is_idle());
  file.complete_all();
  CHECK(head.consumed[{0, kStdout}] == 3);
  head.accept(0, kStdout, kEof, "d");
  CHECK(file.text == "abcd");
  file.complete_all();
  CHECK(head.consumed[{0, kStdout}] == 3);
  head.out.complete_all();
  CHECK(head.consumed[{0, kStdout}] == 4);
  CHECK(head.consumed[{1, kStdout}] == 2);
}

TEST_CASE("a silent owner's line is closed after a second, if others wait") {
  Head head;
  using std::chrono::milliseconds;
  head.accept(0, kStdout, kOpen, "a");
  head.out.complete_all();
  CHECK_FALSE(head.mux->next_deadline());  // no stream waits
  head.now += milliseconds(400);
  head.accept(1, kStdout, kLine, "b\n");
  const TimePoint deadline = head.now + milliseconds(600);
  CHECK(head.mux->next_deadline() == deadline);
  REQUIRE(head.deadlines.size() == 1);
  CHECK(head.deadlines.back() == deadline);

  head.now = deadline - milliseconds(1);
  head.mux->on_tick();
  CHECK(head.out.text == "[0]<stdout>:a");
  head.now = deadline;
  head.mux->on_tick();
  CHECK(head.out.text == "[0]<stdout>:a\n[1]<stdout>:b\n");
  CHECK_FALSE(head.mux->next_deadline());
  CHECK_FALSE(head.deadlines.back());
  head.accept(0, kStdout, kLine, "c\n");
  CHECK(head.out.text == "[0]<stdout>:a\n[1]<stdout>:b\n[0]<stdout>:c\n");
}

TEST_CASE("an owner that writes gets another second") {
  Head head;
  head.accept(0, kStdout, kOpen, "a").accept(1, kStdout, kLine, "b\n");
  head.out.complete_all();
  head.now += std::chrono::milliseconds(900);
  head.accept(0, kStdout, kOpen, "c");
  head.out.complete_all();
  head.now += std::chrono::milliseconds(900);
  head.mux->on_tick();
  CHECK(head.out.text == "[0]<stdout>:ac");
  head.now += std::chrono::milliseconds(100);
  head.mux->on_tick();
  CHECK(head.out.text == "[0]<stdout>:ac\n[1]<stdout>:b\n");
}

TEST_CASE("an owner that waits for a slow reader is not silent") {
  Head head;
  head.accept(0, kStdout, kOpen, "a").accept(1, kStdout, kLine, "b\n");
  CHECK_FALSE(head.mux->next_deadline());
  head.now += std::chrono::seconds(60);
  head.mux->on_tick();
  CHECK(head.out.text == "[0]<stdout>:a");
  head.out.complete_all();
  CHECK(head.mux->next_deadline() == head.now + OutputMux::kOwnerPatience);
}

TEST_CASE("a prompt does not delay other streams") {
  Head head;
  head.accept(0, kStdout, kIdle, "name: ").accept(1, kStdout, kLine, "b\n");
  CHECK_FALSE(head.mux->next_deadline());
  CHECK(head.out.text == "[0]<stdout>:name: \n[1]<stdout>:b\n");
}

TEST_CASE("ddlrun's own lines stand between the ranks' lines, without tag and credit") {
  Head head;
  head.accept(0, kStdout, kOpen, "a");
  head.mux->print(kStderr, "ddlrun: note");
  CHECK(head.out.text == "[0]<stdout>:a");
  head.accept(0, kStdout, kLine, "b\nc\n");
  head.out.complete_all();
  CHECK(head.out.text == "[0]<stdout>:ab\n[0]<stdout>:c\nddlrun: note\n");
  CHECK(head.consumed.size() == 1);
}

TEST_CASE("raw, bytes of both streams pass exactly") {
  const auto make_raw = [](OutputMuxOptions& options) {
    options.num_ranks = 1;
    options.tag = false;
    options.raw = true;
  };
  Head shared(Head::Screens::kShared, make_raw);
  shared.accept(0, kStdout, kOpen, "a").accept(0, kStderr, kOpen, "b\r").accept(0, kStdout, kOpen, "c\nd");
  shared.accept(0, kStdout, kEof, "").accept(0, kStderr, kEof, "");
  shared.out.complete_all();
  CHECK(shared.out.text == "ab\rc\nd");
  Head separate(Head::Screens::kSeparate, make_raw);
  separate.accept(0, kStdout, kOpen, "a").accept(0, kStderr, kOpen, "b").accept(0, kStdout, kEof, "");
  CHECK(separate.out.text == "a");
  CHECK(separate.err.text == "b");
}

TEST_CASE("the callback for an idle mux is called once") {
  Head head;
  int idle = 0;
  const auto count = [&idle] { ++idle; };
  head.mux->when_idle(count);
  CHECK(idle == 1);
  head.accept(0, kStdout, kLine, "a\n").accept(1, kStdout, kOpen, "b").accept(2, kStdout, kEof, "c");
  head.mux->when_idle(count);
  head.out.complete_all();
  CHECK(idle == 1);  // rank 2 waits for rank 1's line
  head.accept(1, kStdout, kEof, "");
  CHECK(idle == 1);
  head.out.complete_all();
  CHECK(idle == 2);
  head.accept(0, kStdout, kEof, "x");
  head.out.complete_all();
  CHECK(idle == 2);
}

TEST_CASE("tags enlarge short lines, and still no more than two batches are held") {
  Head head;
  const std::string empty_lines(256 * 1024, '\n');
  for (int rank = 0; rank < 3; ++rank) head.accept(rank, kStdout, kLine, empty_lines);
  const std::size_t raw = 3 * empty_lines.size();
  const std::size_t batches = OutputMux::kBatches * (OutputMux::kBatchBytes + 64);
  std::size_t most = 0;
  while (head.out.num_pending() > 0) {
    CHECK(head.out.num_pending() <= OutputMux::kBatches);
    most = std::max(most, head.mux->held_bytes());
    head.out.complete_one();
  }
  CHECK(most <= raw + batches);
  CHECK(head.mux->held_bytes() == 0);
  CHECK(head.out.text.size() == raw * std::string("[0]<stdout>:\n").size());
  CHECK(head.consumed[{2, kStdout}] == empty_lines.size());
}

TEST_CASE("many short chunks that wait are joined, first with their neighbours, then past others") {
  Head neighbours;
  neighbours.accept(0, kStdout, kLine, "1\n").accept(0, kStdout, kLine, "2\n");  // both batches are under way
  neighbours.accept(0, kStdout, kLine, "a\n").accept(0, kStdout, ChunkEnd::kCarriageReturn, "b\r");
  neighbours.accept(0, kStdout, kEof, "c").accept(1, kStdout, kLine, "d\n");
  neighbours.out.complete_all();
  CHECK(neighbours.out.text ==
        "[0]<stdout>:1\n[0]<stdout>:2\n[0]<stdout>:a\n[0]<stdout>:b\r[0]<stdout>:c\n[1]<stdout>:d\n");

  Head crowd;
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) {
    crowd.accept(0, kStdout, kLine, "\n").accept(1, kStdout, kLine, "\n");
  }
  crowd.out.complete_all();
  int changes = 0;
  int lines = 0;
  char previous = 0;
  for (std::size_t at = 0; at < crowd.out.text.size(); at = crowd.out.text.find('\n', at) + 1) {
    const char rank = crowd.out.text[at + 1];
    changes += rank != previous ? 1 : 0;
    previous = rank;
    ++lines;
  }
  CHECK(lines == 2 * kLines);
  CHECK(changes >= static_cast<int>(OutputMux::kManyChunks));
  CHECK(changes <= static_cast<int>(OutputMux::kManyChunks) + 8);
}

TEST_CASE("lines keep their time stamps when chunks are joined") {
  Head head(Head::Screens::kShared, [](OutputMuxOptions& options) { options.timestamp = true; });
  for (const std::int64_t milliseconds : {0, 0, 1, 1, 2}) {
    for (int i = 0; i < 2; ++i) {
      head.mux->accept(chunk(0, kStdout, kLine, "x\n", milliseconds * 1'000'000 + i));
    }
  }
  head.out.complete_all();
  std::string milliseconds;
  for (std::size_t at = 0; at < head.out.text.size(); at = head.out.text.find('\n', at) + 1) {
    milliseconds += head.out.text[at + std::string("1970-01-01T00:00:00.00").size()];
  }
  CHECK(milliseconds == "0000111122");
}

TEST_CASE("a file's sink has one write at a time, and the rest follows in one") {
  static RecordingSink file;
  file = RecordingSink();
  Head head(Head::Screens::kShared, [](OutputMuxOptions& options) {
    options.file_sink = [](int, OutputStream stream) { return stream == kStdout ? &file : nullptr; };
  });
  for (const char* line : {"a\n", "b\n", "c\n"}) head.accept(0, kStdout, kLine, line);
  CHECK(file.writes == std::vector<std::string>{"a\n"});
  file.complete_all();
  CHECK(file.writes == std::vector<std::string>{"a\n", "b\nc\n"});
  head.out.complete_all();
  CHECK(head.consumed[{0, kStdout}] == 6);
  CHECK(head.mux->is_idle());
}

TEST_CASE("the callbacks of a mux that is gone do nothing") {
  Head head;
  head.accept(0, kStdout, kLine, "a\n");
  head.mux.reset();
  head.out.complete_all();
  CHECK(head.consumed.empty());
}

TEST_CASE("a refund may bring the next chunk at once") {
  RecordingSink out;
  OutputMux* mux = nullptr;
  int left = 1000;
  OutputMuxOptions options;
  options.stdout_sink = options.stderr_sink = &out;
  options.on_consumed = [&](int, OutputStream, std::size_t) {
    if (left-- > 0) mux->accept(chunk(0, kStdout, kLine, "a\n"));
  };
  OutputMux owned(std::move(options));
  mux = &owned;
  mux->accept(chunk(0, kStdout, kLine, "a\n"));
  out.complete_all();
  CHECK(out.writes.size() == 1001);
  CHECK(mux->is_idle());
}
