// The end of the output of a process that connects to agents (ssh, srun), and the lines of it that a message quotes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Reads a stream and keeps its last 8 KiB: enough for the errors of a program and a shell, whose end matters most.
/// For the loop's thread.
class StreamTail {
 public:
  /// stream: if it is empty, the text stays empty.
  explicit StreamTail(UniqueFd stream) : stream_(std::move(stream)) {}

  /// Begins to read. on_end is called once, when the stream has ended.
  void begin(EventLoop& loop, std::function<void()> on_end = {});
  /// Reads the bytes that are available now, without waiting for the loop.
  void read_available();
  void stop();
  const std::string& text() const { return text_; }

 private:
  UniqueFd stream_;
  std::string text_;
  EventLoop::FdWatch watch_;
  std::function<void()> on_end_;
};

/// The last lines of a text that a program wrote before it failed, for an error message: without ssh's routine
/// notices, empty lines and control characters; at most three, joined by " / ".
std::string last_error_lines(std::string_view text);

}  // namespace ddl::launcher
