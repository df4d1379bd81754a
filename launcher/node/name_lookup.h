// Whether the names of addresses can be looked up on this node without a long wait.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Looks the name of an address up as programs do, in a thread: where no name server answers, that takes ten seconds
/// and more. Used from the loop's thread.
class NameLookup {
 public:
  struct Settings {
    std::chrono::milliseconds patience{4000};  ///< resolv.conf(5): a name server is given 5 s
    std::function<void(const std::string& address)> look_up;
    Settings();
  };
  /// on_slow: called if the answer does not come in time, with the address.
  NameLookup(EventLoop& loop, std::function<void(const std::string& address)> on_slow, Settings settings = {})
      : loop_(loop), on_slow_(std::move(on_slow)), settings_(std::move(settings)) {}

  /// address: of IPv4 or IPv6, as text. Returns at once. If no thread can be started, nothing follows.
  void start(const std::string& address);

 private:
  EventLoop& loop_;
  std::function<void(const std::string&)> on_slow_;
  Settings settings_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
