// The standard input of the ranks that read it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Copies what the head sends to every reading rank's pipe and tells how much the slowest of them has taken.
/// Lives on the event loop's thread.
class StdinFeed {
 public:
  struct Handlers {
    std::function<void(std::int64_t)> on_taken;  ///< so many more bytes are taken by all that still read
    std::function<void()> on_closed;             ///< nobody reads any more; called once
  };
  StdinFeed(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  /// Adds a rank's pipe; only before the first bytes.
  void add(UniqueFd pipe);
  void send(std::string_view bytes);
  /// Closes every pipe once it has taken what was sent.
  void end();

 private:
  struct Reader {
    UniqueFd pipe;
    std::string pending;
    EventLoop::FdWatch watch;
  };
  void write_some(std::list<Reader>::iterator reader);
  void settle();

  EventLoop& loop_;
  Handlers handlers_;
  std::list<Reader> readers_;
  std::int64_t sent_ = 0;
  std::int64_t reported_ = 0;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace ddl::launcher
