// The whole way with real threads and a real pipe: source -> credit -> splitter -> mux -> writer -> reader.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "base/fd.h"
#include "launcher/output/blocking_writer.h"
#include "launcher/output/output_mux.h"
#include "launcher/output/output_stream.h"
#include "launcher_output/fakes.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::test::PostQueue;

namespace {

constexpr int kRanks = 4;
constexpr std::size_t kReadBytes = 64 * 1024;

/// What a rank writes: numbered lines, without end.
class NumberedLines {
 public:
  explicit NumberedLines(int rank) : rank_(rank) {}
  /// The next size bytes.
  std::string_view take(std::size_t size) {
    while (text_.size() < size) {
      char line[100];
      const int length = std::snprintf(line, sizeof line, "rank %d line %012ld %060d\n", rank_, number_++, 7);
      text_.append(line, static_cast<std::size_t>(length));
    }
    taken_.assign(text_, 0, size);
    text_.erase(0, size);
    return taken_;
  }

 private:
  int rank_;
  long number_ = 0;
  std::string text_;
  std::string taken_;
};

/// Agent and head in one: reads from each rank's source as credit allows.
class Pipeline {
 public:
  explicit Pipeline(std::size_t bytes_per_rank) {
    auto made = ddl::make_pipe();
    REQUIRE(made);
    pipe_ = std::move(*made);
    auto writer = BlockingWriter::create(pipe_.second.get(), queue_.post(), [](int) { FAIL("broken pipe"); });
    REQUIRE(writer);
    writer_ = std::move(*writer);
    pipe_.second.reset();

    const std::size_t window = output_window(kRanks);
    OutputMuxOptions options;
    options.num_ranks = kRanks;
    options.stdout_sink = options.stderr_sink = writer_.get();
    options.refund_step = output_refund_step(window);
    options.on_consumed = [this](int rank, OutputStream, std::size_t bytes) {
      CHECK(ranks_[static_cast<std::size_t>(rank)].credit.refund(bytes));
    };
    mux_ = std::make_unique<OutputMux>(std::move(options));
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(
          {NumberedLines(rank), OutputCredit(window),
           LineSplitter(rank, OutputStream::kStdout, LineSplitter::Mode::kLines, output_line_limit(window)),
           bytes_per_rank});
    }
  }

  /// Runs until is_done().
  template <class Condition>
  void run_until(Condition is_done) {
    CHECK(queue_.run_until([&] {
      read_ranks();
      return is_done();
    }));
  }
  bool has_read_all() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.left == 0; });
  }
  bool is_stalled() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return rank.credit.may_read() == 0 || rank.left == 0; });
  }
  OutputMux& mux() { return *mux_; }
  int reading_end() const { return pipe_.first.get(); }
  std::size_t most_held() const { return most_held_; }
  std::size_t total_read() const { return total_read_; }
  /// The reader sees the end.
  void close() {
    mux_.reset();
    writer_.reset();
  }

 private:
  struct Rank {
    NumberedLines source;
    OutputCredit credit;
    LineSplitter splitter;
    std::size_t left;
  };
  void read_ranks() {
    std::vector<OutputChunk> chunks;
    for (Rank& rank : ranks_) {
      while (const std::size_t size = std::min({rank.left, rank.credit.may_read(), kReadBytes})) {
        rank.credit.spend(size);
        rank.left -= size;
        total_read_ += size;
        rank.splitter.append(rank.source.take(size), 0, chunks);
        if (rank.left == 0) rank.splitter.finish(0, chunks);
        for (OutputChunk& chunk : chunks) mux_->accept(std::move(chunk));
        chunks.clear();
        most_held_ = std::max(most_held_, mux_->held_bytes());
      }
    }
  }

  PostQueue queue_;
  ddl::FdPair pipe_;
  std::unique_ptr<BlockingWriter> writer_;
  std::vector<Rank> ranks_;
  std::unique_ptr<OutputMux> mux_;
  std::size_t most_held_ = 0;
  std::size_t total_read_ = 0;
};

constexpr std::size_t kLineLength = 86;  // of NumberedLines

/// Reads to the end and checks that lines are whole and each rank's in order. Returns the number of lines.
long read_and_check(int fd) {
  std::array<long, kRanks> next{};
  long lines = 0;
  std::string text;
  std::array<char, 65536> buffer;
  bool is_right = true;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t at = 0;
    for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      int tag = -1;
      int rank = -1;
      long number = -1;
      const std::string line = text.substr(at, end - at);
      is_right =
          is_right && std::sscanf(line.c_str(), "[%d]<stdout>:rank %d line %ld", &tag, &rank, &number) == 3 &&
          tag == rank && rank >= 0 && rank < kRanks && number == next[static_cast<std::size_t>(rank)]++;
      ++lines;
    }
    text.erase(0, at);
  }
  return is_right && text.empty() ? lines : -1;
}

}  // namespace

TEST_CASE("a reader that does not read stops the ranks, with bounded memory, and then gets everything") {
  constexpr std::size_t kPerRank = 20'000 * kLineLength;
  Pipeline pipeline(kPerRank);
  pipeline.run_until([&] { return pipeline.is_stalled(); });
  CHECK_FALSE(pipeline.has_read_all());
  const std::size_t window = output_window(kRanks);
  const auto pipe_bytes = static_cast<std::size_t>(::fcntl(pipeline.reading_end(), F_GETPIPE_SZ));
  CHECK(pipeline.total_read() <= kRanks * window + OutputMux::kBatches * OutputMux::kBatchBytes + pipe_bytes);

  std::atomic<long> lines = 0;
  std::thread reader([&] { lines = read_and_check(pipeline.reading_end()); });
  pipeline.run_until([&] { return pipeline.has_read_all() && pipeline.mux().is_idle(); });
  CHECK(pipeline.most_held() <=
        kRanks * window + OutputMux::kBatches * (OutputMux::kBatchBytes + 2 * kLineLength));
  pipeline.close();
  reader.join();
  CHECK(lines == 4L * 20'000);
}

// Hidden: ask for it by its tag, in a release build.
TEST_CASE("200 MB of each of 4 ranks", "[.throughput]") {
  constexpr long kLines = 200'000'000 / kLineLength;
  Pipeline pipeline(kLines * kLineLength);
  const auto start = std::chrono::steady_clock::now();
  std::thread reader([&] {
    std::array<char, 65536> buffer;
    while (::read(pipeline.reading_end(), buffer.data(), buffer.size()) > 0) continue;
  });
  pipeline.run_until([&] { return pipeline.has_read_all() && pipeline.mux().is_idle(); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  pipeline.close();
  reader.join();
  WARN("seconds: " << seconds.count() << ", most held: " << pipeline.most_held());
  CHECK(seconds.count() < 60);
}
