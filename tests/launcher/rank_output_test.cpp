#include "launcher/node/io_forwarding.h"

#include <optional>

#include "launcher/loop_driver.h"
#include "support/pipes.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;
using namespace ddl::test;

namespace {

struct OutputFixture {
  /// window: credit in bytes, of which the line limit is half.
  void open(std::size_t window, OutputStream stream = OutputStream::kStdout, bool split = true,
            bool idle = false) {
    auto pipe = test_pipe();
    REQUIRE(ddl::set_nonblocking(pipe.second.get(), true));
    rank = std::move(pipe.second);
    output.emplace(loop, RankOutput::Settings{3, stream, split, idle, window}, std::move(pipe.first),
                   [this](OutputChunk&& chunk) {
                     bytes += chunk.bytes;
                     ends.push_back(chunk.end);
                     CHECK(chunk.rank == 3);
                     chunks.push_back(std::move(chunk));
                     driver.check();
                   });
  }
  /// Fills the pipe; returns how much it took.
  std::size_t fill() {
    const std::string line = std::string(99, 'x') + "\n";
    std::size_t total = 0;
    for (ssize_t wrote = 0; (wrote = ::write(rank.get(), line.data(), line.size())) > 0;) {
      total += static_cast<std::size_t>(wrote);
    }
    return total;
  }
  bool has_ended() const { return !ends.empty() && ends.back() == ChunkEnd::kEof; }

  EventLoop loop;
  LoopDriver driver{loop};
  ddl::UniqueFd rank;  // its end of the pipe
  std::optional<RankOutput> output;
  std::string bytes;
  std::vector<ChunkEnd> ends;
  std::vector<OutputChunk> chunks;
};

constexpr std::size_t kWide = 1 << 20;

}  // namespace

TEST_CASE_METHOD(OutputFixture,
                 "whole lines are emitted, with stream and time, and the end of the stream closes it") {
  open(kWide, OutputStream::kStderr);
  write_text(rank.get(), "one\ntwo\nthr");
  driver.run_until("two lines", [&] { return bytes == "one\ntwo\n"; });
  CHECK(chunks[0].stream == OutputStream::kStderr);
  CHECK(chunks[0].time_ns > 1'600'000'000'000'000'000);
  CHECK_FALSE(output->is_closed());
  write_text(rank.get(), "ee");
  rank.reset();
  driver.run_until("the end", [&] { return has_ended(); });
  CHECK(bytes == "one\ntwo\nthree");
  CHECK(chunks.back().bytes == "three");
  CHECK(output->is_closed());
}

TEST_CASE_METHOD(OutputFixture, "an empty stream is one chunk that marks its end") {
  open(kWide);
  rank.reset();
  driver.run_until("the end", [&] { return has_ended(); });
  CHECK(chunks.size() == 1);
  CHECK(bytes.empty());
}

TEST_CASE_METHOD(OutputFixture, "in raw mode the bytes are emitted as they arrive") {
  open(kWide, OutputStream::kStdout, false);
  write_text(rank.get(), "no line end");
  driver.run_until("the bytes", [&] { return bytes == "no line end"; });
  CHECK(ends.back() == ChunkEnd::kOpen);
}

TEST_CASE_METHOD(OutputFixture, "a prompt is emitted after a moment if the output goes to a terminal") {
  open(kWide, OutputStream::kStdout, true, true);
  write_text(rank.get(), "continue? ");
  driver.run_until("the prompt", [&] { return bytes == "continue? "; });
  CHECK(ends.back() == ChunkEnd::kIdle);
}

TEST_CASE_METHOD(OutputFixture, "reading stops where the credit ends and continues with a refund") {
  open(4096);
  const std::size_t written = fill();
  REQUIRE(written > 8192);
  driver.run_until("the first window's whole lines", [&] { return bytes.size() == 4000; });
  driver.run_ready();
  driver.run_ready();
  CHECK(bytes.size() == 4000);
  const std::size_t before = bytes.size();
  output->refund(2000);
  driver.run_until("what was refunded", [&] { return bytes.size() >= before + 1900; });
  driver.run_ready();
  CHECK(bytes.size() <= 4096 + 2000);

  while (bytes.size() < written) {
    const std::size_t had = bytes.size();
    output->refund(2000);
    driver.run_until("more", [&] { return bytes.size() > had; });
  }
  rank.reset();
  output->refund(4096);
  driver.run_until("the end", [&] { return has_ended(); });
  CHECK(bytes.size() == written);
}

TEST_CASE_METHOD(
    OutputFixture,
    "draining reads the rest of an ended rank's output, even without credit, and finds the end") {
  open(4096);
  const std::size_t written = fill();
  rank.reset();
  output->drain();
  CHECK(bytes.size() == written);
  CHECK(output->is_closed());
  CHECK(has_ended());
  output->drain();  // nothing more happens
  output->refund(4096);
  driver.run_ready();
  CHECK(ends.back() == ChunkEnd::kEof);
}

// "sh -c 'yes & exit'": the process that the rank leaves behind writes as fast as the agent reads.
TEST_CASE_METHOD(OutputFixture, "draining ends even if a process continues to write to the pipe") {
  auto pipe = test_pipe();
  REQUIRE(ddl::set_nonblocking(pipe.second.get(), true));
  rank = std::move(pipe.second);
  std::size_t written = 0;
  std::size_t emitted = 0;
  output.emplace(loop, RankOutput::Settings{0, OutputStream::kStdout, true, false, kWide},
                 std::move(pipe.first), [&](OutputChunk&& chunk) {
                   emitted += chunk.bytes.size();
                   REQUIRE(emitted < (10u << 20));
                   written += fill();  // the pipe is filled again at once
                 });
  written += fill();
  output->drain();
  CHECK_FALSE(output->is_closed());
  CHECK(emitted <= 2 * 65536 + 100);
}

// A leftover process holds the pipe open while the head refunds more than the window: the rest must still be read.
TEST_CASE_METHOD(OutputFixture,
                 "a stream that was drained beyond its credit is read further after the refund") {
  open(4096);
  const std::size_t written = fill();
  output->drain();
  REQUIRE(bytes.size() == written);
  REQUIRE_FALSE(output->is_closed());
  write_text(rank.get(), "from a grandchild\n");
  output->refund(written);  // in one piece, as the head does
  driver.run_until("what came later", [&] { return bytes.ends_with("from a grandchild\n"); });
  rank.reset();
  driver.run_until("the end", [&] { return has_ended(); });
}

TEST_CASE_METHOD(
    OutputFixture,
    "the last lines of standard error are kept for the report, but not those of standard output") {
  const bool is_err = GENERATE(true, false);
  open(kWide, is_err ? OutputStream::kStderr : OutputStream::kStdout);
  write_text(rank.get(), "Traceback:\nValueError");
  rank.reset();
  driver.run_until("the end", [&] { return has_ended(); });
  CHECK(output->tail() ==
        (is_err ? std::vector<std::string>{"Traceback:", "ValueError"} : std::vector<std::string>{}));
}
