// One stream of one rank, from its pipe to chunks for the head.
#pragma once

#include <functional>
#include <vector>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/output/credit.h"
#include "launcher/output/line_splitter.h"
#include "launcher/output/stderr_tail.h"

namespace ddl::launcher {

/// Reads a pipe while the stream has credit and hands chunks on. Ends itself at end of file, after a kEof chunk.
/// Lives on the event loop's thread.
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

  /// The head has handed on that many bytes.
  void refund(std::size_t bytes);
  /// Reads what the pipe holds now, credit or not: its writer has ended. One pipe buffer at most, whoever else writes.
  void drain();
  bool is_closed() const { return !pipe_; }
  /// The last lines; kept for standard error only.
  std::vector<std::string> tail() const { return tail_.lines(); }

 private:
  std::size_t read_once(std::size_t limit);
  void hand_on(std::vector<OutputChunk>& chunks);
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

}  // namespace ddl::launcher
