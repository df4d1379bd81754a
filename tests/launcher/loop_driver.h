// Runs an event loop until the condition of a test holds.
#pragma once

#include <functional>
#include <string>

#include "launcher/loop/event_loop.h"
#include "support/catch.h"

namespace ddl::launcher::test {

/// The test's handlers call check() whenever they have recorded an event.
class LoopDriver {
 public:
  explicit LoopDriver(EventLoop& loop) : loop_(loop) {}

  /// Returns once the condition holds; fails the test if it does not within 20 s.
  void run_until(const std::string& what, std::function<bool()> condition) {
    condition_ = std::move(condition);
    bool expired = false;
    const auto watchdog = loop_.after(std::chrono::seconds(20), [&] {
      expired = true;
      loop_.stop();
    });
    while (!condition_() && !expired) loop_.run();
    condition_ = nullptr;
    INFO("waiting for: " << what);
    REQUIRE_FALSE(expired);
  }

  /// Returns when everything that was ready or posted before has been handled.
  void run_ready() {
    bool passed = false;
    // Twice: what is ready now is queued behind the first.
    loop_.post([&] {
      loop_.post([&] {
        passed = true;
        loop_.stop();
      });
    });
    while (!passed) loop_.run();
  }

  void check() {
    if (condition_ && condition_()) loop_.stop();
  }

 private:
  EventLoop& loop_;
  std::function<bool()> condition_;
};

}  // namespace ddl::launcher::test
