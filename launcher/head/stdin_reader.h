// ddlrun's own standard input, on its way to the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Reads a borrowed descriptor and hands the bytes on, never more than kWindow ahead of what the ranks have taken.
/// A terminal is read only while ddlrun is in its foreground: a background job must not be stopped for reading it, nor
/// take the shell's input. Lives on the loop's thread.
class StdinReader {
 public:
  static constexpr std::int64_t kWindow = 256 * 1024;

  struct Handlers {
    std::function<void(std::string&&)> on_bytes;
    std::function<void()> on_end;  ///< end of file, or an error: once
  };
  StdinReader(EventLoop& loop, int fd, Handlers handlers);

  /// The ranks have taken that many bytes.
  void refund(std::int64_t bytes);
  /// ddlrun has been continued, perhaps in the foreground.
  void recheck_terminal();
  /// Nobody wants any more.
  void stop() {
    ended_ = true;
    look_again_.cancel();
    watch_.reset();
  }

 private:
  bool is_in_background() const;
  /// Has the descriptor watched if it may be read now; in the background, looks again later.
  void watch_as_allowed();
  void on_readable();

  EventLoop& loop_;
  int fd_;
  Handlers handlers_;
  bool is_terminal_;
  bool ended_ = false;
  std::int64_t under_way_ = 0;
  EventLoop::FdWatch watch_;
  EventLoop::Timer look_again_;
};

}  // namespace ddl::launcher
