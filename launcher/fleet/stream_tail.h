// The end of what a process of ours that connects to agents (ssh, srun) has written, and the lines of it that a person should
// read.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Reads along and keeps the last 8 KiB: enough for a program's and a shell's complaints, of which the end is what matters.
/// For the loop's thread.
class StreamTail {
 public:
  /// stream: may be empty, which is a stream without a word.
  explicit StreamTail(UniqueFd stream) : stream_(std::move(stream)) {}

  /// Begins to read; on_end: the stream has ended, once.
  void begin(EventLoop& loop, std::function<void()> on_end = {});
  /// Reads what there is now, without waiting for the loop to tell.
  void catch_up();
  void stop();
  const std::string& text() const { return text_; }

 private:
  UniqueFd stream_;
  std::string text_;
  EventLoop::FdWatch watch_;
  std::function<void()> on_end_;
};

// What a person should read of a text that a program wrote before it gave up.

/// The lines that say something, without ssh's routine notices and without control characters; at most the last three, joined
/// by " / ".
std::string last_error_lines(std::string_view text);

}  // namespace ddl::launcher
