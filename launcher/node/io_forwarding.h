// The standard streams of a node's ranks: output from their pipes becomes chunks for the head, and input from the
// head goes to the ranks that read it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/printable_text.h"
#include "launcher/loop/event_loop.h"
#include "launcher/output/output_stream.h"

namespace ddl::launcher {

/// One output stream of one rank: reads its pipe while the stream has credit, and emits chunks. Closes itself at
/// end of file, after a kEof chunk. Lives on the event loop's thread.
class RankOutput {
 public:
  struct Settings {
    int rank = 0;
    OutputStream stream = OutputStream::kStdout;
    bool split_lines = true;
    bool flush_idle_lines = false;
    std::size_t window = 0;
  };
  using Emit = std::function<void(OutputChunk&&)>;

  RankOutput(EventLoop& loop, Settings settings, UniqueFd pipe, Emit emit);

  /// The head has written out this number of bytes.
  void refund(std::size_t bytes);
  /// Reads the bytes that the pipe holds now, even without credit: its writer has ended. At most one pipe buffer,
  /// even if another process goes on writing.
  void drain();
  bool is_closed() const { return !pipe_; }
  /// The last lines; kept for standard error only.
  std::vector<std::string> tail() const { return tail_.lines(); }

 private:
  std::size_t read_once(std::size_t limit);
  void emit_all(std::vector<OutputChunk>& chunks);
  void close();

  EventLoop& loop_;
  Settings settings_;
  UniqueFd pipe_;
  Emit emit_;
  LineSplitter splitter_;
  OutputCredit credit_;
  StderrTail tail_;
  EventLoop::FdWatch watch_;
  EventLoop::Timer idle_timer_;
};

/// Standard input of the ranks that read it: copies the head's bytes to the pipe of each of them, and reports how
/// much the slowest has read. Lives on the event loop's thread.
class StdinFeed {
 public:
  struct Handlers {
    std::function<void(std::int64_t)> on_taken;  ///< the slowest reader has advanced by this number of bytes
    std::function<void()> on_closed;             ///< no rank reads any more; called once
  };
  StdinFeed(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  /// Adds a rank's pipe; only before the first bytes.
  void add(UniqueFd pipe);
  void send(std::string_view bytes);
  /// Closes each pipe once all that was sent was written to it.
  void end();

 private:
  struct Reader {
    UniqueFd pipe;
    std::string pending;
    EventLoop::FdWatch watch;
  };
  void write_some(std::list<Reader>::iterator reader);
  void report_progress();

  EventLoop& loop_;
  Handlers handlers_;
  std::list<Reader> readers_;
  std::int64_t sent_ = 0;
  std::int64_t reported_ = 0;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace ddl::launcher
