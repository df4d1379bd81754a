// Framed messages both ways between the head and an agent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "net/frame.h"

namespace ddl::launcher {

/// One connection. Handlers run on the event loop's thread; on_closed runs once, and nothing after it.
/// The link must not be destroyed from inside on_frame.
class Link {
 public:
  virtual ~Link() = default;

  struct Handlers {
    std::function<void(net::Frame)> on_frame;
    std::function<void(const std::string& reason)>
        on_closed;  ///< "closed by the other side", "write: Broken pipe"
  };
  /// Begins to deliver. Called once.
  virtual void start(Handlers handlers) = 0;
  /// Queues a frame; never blocks. After the link has closed it does nothing.
  virtual void send(std::uint16_t type, std::string_view payload) = 0;
  /// Bytes that the other side has not been handed yet.
  virtual std::size_t queued_bytes() const = 0;
  /// Blocks until everything queued was written, the link broke, or a second has passed: for last words before a process
  /// ends or stops.
  virtual void flush() = 0;
};

}  // namespace ddl::launcher
