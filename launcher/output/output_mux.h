// Brings the output of all ranks together at the head: onto its standard output and error, and into files.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/output/line_formatter.h"
#include "launcher/output/output_stream.h"
#include "launcher/output/sink.h"

namespace ddl::launcher {

/// The settings and callbacks of an OutputMux. Sinks are borrowed and outlive it.
struct OutputMuxOptions {
  using TimePoint = std::chrono::steady_clock::time_point;

  int num_ranks = 1;
  std::vector<int> labels{};  ///< of the ranks: the numbers in their tags. Empty: the ranks
  bool tag = true;
  bool timestamp = false;
  bool merges_stderr = false;  ///< ranks' standard error goes to stdout_sink, too; not that of print()
  /// Pass bytes on unchanged and at once: for one rank without tags and time stamps, whose LineSplitters are raw.
  bool raw = false;

  Sink* stdout_sink = nullptr;
  Sink* stderr_sink = nullptr;  ///< the same object as stdout_sink if both are the same file (is_same_file())
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  /// Where a stream's exact bytes go besides; nullptr for none. Empty: no files.
  std::function<Sink*(int rank, OutputStream stream)> file_sink;

  /// All sinks have taken this number of bytes of a rank's stream: its agent may send as many more. Bytes are
  /// reported once, refund_step or more at a time. Empty: not reported.
  std::function<void(int rank, OutputStream stream, std::size_t bytes)> on_consumed;
  std::size_t refund_step = 1;

  /// next_deadline() has changed: set or cancel the timer that calls on_tick(). Empty: the caller asks.
  std::function<void(std::optional<TimePoint>)> on_deadline;

  std::function<TimePoint()> now = [] { return std::chrono::steady_clock::now(); };
};

/// Chunks are shown in the order in which they come, except that one stream's unfinished line (kOpen) keeps the
/// others back: until its end comes, or until the sinks have everything of it and it has been silent for
/// kOwnerPatience.
///
/// One thread. Callbacks come from inside accept(), print(), on_tick() and the sinks' done; they may call accept()
/// and print(), and must not destroy the mux.
///
/// Memory: the bytes that agents have credit for (twice if there are files), and for each of the two screen sinks
/// kBatches batches of kBatchBytes plus one line with its tag (without tags: one chunk). So that many short chunks
/// cost no more than a few long ones, a waiting chunk takes in the one that follows it; from kManyChunks on also past
/// other streams' chunks.
class OutputMux {
 public:
  using TimePoint = OutputMuxOptions::TimePoint;
  static constexpr std::chrono::seconds kOwnerPatience{1};
  static constexpr std::size_t kBatchBytes = 256 * 1024;
  static constexpr std::size_t kBatches = 2;
  static constexpr std::size_t kManyChunks = 4096;

  explicit OutputMux(OutputMuxOptions options);
  ~OutputMux();
  OutputMux(const OutputMux&) = delete;
  OutputMux& operator=(const OutputMux&) = delete;

  /// chunk.rank is in [0, num_ranks). Nothing follows a stream's kEof.
  void accept(OutputChunk chunk);

  /// A line of ddlrun's own, without a tag, between the ranks' lines; line has no "\n".
  void print(OutputStream stream, std::string line);

  /// When on_tick() is wanted; nullopt: not before something else happens.
  std::optional<TimePoint> next_deadline() const;
  void on_tick();

  /// True if the sinks have taken everything, and no line is waiting for another's end.
  bool is_idle() const { return waiting_chunks_ == 0 && writes_under_way_ == 0; }
  /// Calls back once, as soon as is_idle(): at once if it is. No more than one call may be pending.
  void when_idle(std::function<void()> callback);

  /// Bytes held: of chunks that wait to be formatted, and formatted ones that the sinks for the screen have not
  /// taken.
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  struct Waiting {
    std::uint64_t order = 0;
    OutputChunk chunk;
    std::size_t formatted = 0;  // bytes of chunk
  };
  struct Stream {
    std::size_t screen = 0;
    std::deque<Waiting> waiting;
    Sink* file = nullptr;
    bool is_filing = false;  // the file's sink has bytes of the stream: the next ones wait here
    std::string file_waiting;
    // Bytes of the whole life of the stream.
    std::uint64_t accepted = 0;
    std::uint64_t shown = 0;
    std::uint64_t filed = 0;
    std::uint64_t reported = 0;
    TimePoint drained_at{};  // when the sinks had last taken everything
    std::uint64_t consumed() const { return file == nullptr ? shown : std::min(shown, filed); }
  };
  using Share = std::pair<int, std::size_t>;  // of a batch: stream and bytes
  struct Screen {
    Sink* sink = nullptr;
    LineFormatter formatter;
    std::set<std::pair<std::uint64_t, int>> next;  // (order of its first waiting chunk, stream)
    std::size_t batches = 0;                       // being written
    std::uint64_t last_order = 0;                  // of the chunk that came last
  };

  void enqueue(int stream, OutputChunk chunk);
  bool may_join(const Waiting& last, const OutputChunk& chunk) const;
  void write_file(int stream, std::string bytes);
  void pump(Screen& screen);
  std::optional<int> next_stream(const Screen& screen) const;
  void on_written(Screen& screen, const std::vector<Share>& shares, std::size_t batch_bytes);
  void on_filed(int stream, std::size_t bytes);
  void on_consumed(int stream);
  void after_change();
  std::function<void()> guarded(std::function<void()> done);
  Stream& stream_at(int stream) { return streams_[stream]; }
  const Stream& stream_at(int stream) const { return streams_[stream]; }

  OutputMuxOptions options_;
  std::vector<std::string> tags_;  // by stream
  std::vector<Stream>
      streams_;  // 2 * rank for stdout, 2 * rank + 1 for stderr; the last two are ddlrun's own
  std::vector<Screen> screens_;  // one, or two if standard output and error are not the same
  std::uint64_t next_order_ = 0;
  std::size_t waiting_chunks_ = 0;
  std::size_t writes_under_way_ = 0;
  std::size_t held_bytes_ = 0;
  std::optional<TimePoint> announced_deadline_;
  std::function<void()> when_idle_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // done callbacks may outlive the mux
};

}  // namespace ddl::launcher
