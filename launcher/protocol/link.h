// The connection between a head and an agent: the greeting by which an agent is found behind whatever a login
// shell prints, and then frames both ways over one or two byte streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "net/frame.h"

namespace ddl::launcher {

/// 128 random bits in hexadecimal digits, by which an agent's greeting is recognised. Not a secret.
Result<std::string> make_nonce();

/// "ddlrun-agent 0.2.0 <nonce>\n".
std::string greeting(std::string_view version, std::string_view nonce);

/// Looks for a greeting in a stream of bytes. Holds at most kMaxNoise bytes.
class GreetingScanner {
 public:
  /// A shell's start-up files may print at most this much before the greeting.
  static constexpr std::size_t kMaxNoise = std::size_t{64} << 10;

  explicit GreetingScanner(std::string nonce) : nonce_(std::move(nonce)) {}

  enum class State { kLooking, kFound, kTooMuchNoise };
  /// Takes bytes as they arrive. After kFound or kTooMuchNoise it must not be called again.
  State take(std::string_view bytes);

  const std::string& version() const { return version_; }  ///< once found: the agent's
  const std::string& rest() const { return rest_; }        ///< once found: what came behind the greeting
  const std::string& noise() const { return seen_; }       ///< what came before it, or all so far

 private:
  std::string nonce_;
  std::string seen_;
  std::string version_;
  std::string rest_;
};

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
  /// Bytes that have been queued and not written yet.
  virtual std::size_t queued_bytes() const = 0;
  /// Blocks until everything queued was written, the link broke, or a second has passed: for the last
  /// messages before a process ends or stops.
  virtual void flush() = 0;
};

/// A link over one or two byte-stream descriptors: a socket pair, or the pipes of a child. Takes the
/// descriptors over and makes them non-blocking. write may be empty: then read is used both ways (a socket).
/// first_bytes: what was read from it already. max_payload: of a frame that is read; a larger one ends the link.
std::unique_ptr<Link> make_stream_link(EventLoop& loop, UniqueFd read, UniqueFd write = {},
                                       std::string_view first_bytes = {},
                                       std::size_t max_payload = net::kMaxFramePayload);

}  // namespace ddl::launcher
